/*
 * fediverse -- what the handlers of ActivityPub share.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_FRONTD_FEDIVERSE_H
#define POSTRIDER_FRONTD_FEDIVERSE_H

#include "common/fediverse/actor_document.h"
#include "frontd/request.h"

enum { NAME_PATH_MAX = 256 };

/* The one whom the path names (":name"; without: the instance's own, made at
 * need). ERR_ABSENT for one we never had, and for all while the setting
 * fediverse is off. */
MUST_CHECK bool actor_of_path(
    struct request *req, struct actor *actor, struct err *err);

#endif

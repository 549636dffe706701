/*
 * profile -- profiles of the client API; handlers of user_routes (users.c).
 *
 * Worker threads.
 */
#ifndef POSTRIDER_FRONTD_PROFILE_H
#define POSTRIDER_FRONTD_PROFILE_H

#include "frontd/request.h"

/* PATCH /api/users/@me */
bool profile_patch(struct request *req, struct err *err);
/* GET /api/users/:id */
bool profile_get(struct request *req, struct err *err);
/* GET /api/users/:id/mutuals */
bool profile_mutuals(struct request *req, struct err *err);

#endif

/*
 * identity -- the end of a person's identity on other nodes, and of theirs
 * here (specification, section 1); handlers of user_routes and relay_routes.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_IDENTITY_H
#define POSTRIDER_IDENTITY_H

#include "frontd/request.h"

/* DELETE /api/federation/identity */
bool identity_delete(struct request *req, struct err *err);
/* POST /api/users/@me/federation-identity/delete */
bool identity_leave(struct request *req, struct err *err);

#endif

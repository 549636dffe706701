/*
 * registry -- a person's list of instances; handlers of user_routes.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_FRONTD_REGISTRY_H
#define POSTRIDER_FRONTD_REGISTRY_H

#include "frontd/request.h"

/* GET, PUT /api/users/@me/federation-registry */
bool registry_get(struct request *req, struct err *err);
bool registry_put(struct request *req, struct err *err);

#endif

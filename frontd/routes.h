/*
 * routes -- which entry of the route tables a request means.
 *
 * A literal segment wins over a parameter, the earlier one first. Any thread.
 */
#ifndef POSTRIDER_ROUTES_H
#define POSTRIDER_ROUTES_H

#include "frontd/request.h"

enum { PATH_PARAMS_MAX = 4 };

struct path_param {
	const char *name;
	const char *value;
};

struct match {
	const struct route *route;
	struct path_param params[PATH_PARAMS_MAX];
	size_t param_count;
};

enum route_found { ROUTE_FOUND, ROUTE_OTHER_METHOD, ROUTE_UNKNOWN };

enum route_found route_find(struct arena *arena, const char *method,
    const char *path, struct match *match);

/* All routes, for metrics: NULL beyond the last. */
const struct route *route_at(size_t place);
/* Place of a route in that order. */
size_t route_place(const struct route *route);

#endif

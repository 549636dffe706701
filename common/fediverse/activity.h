/*
 * activity -- what an inbox has to know of an activity.
 *
 * Its envelope: id, type, who acts, upon what. The rest is the application's
 * and stays as it was received. An object that is embedded counts by its id.
 * Any thread; texts live in the arena.
 */
#ifndef POSTRIDER_ACTIVITY_H
#define POSTRIDER_ACTIVITY_H

#include "common/base/json.h"

/* Bytes of an address: what the database can index. */
enum { ACTIVITY_URL_MAX = 2048, ACTIVITY_TYPE_MAX = 64 };

struct activity {
	const char *id;
	const char *type;
	const char *actor;
	const char *origin; /* the actor's, and the activity's own */
	const char *object; /* or NULL, as those of the object below */
	const char *object_type;
	const char *object_actor;
	const char *object_object;
	struct bytes body;
};

/* ERR_INVALID: no JSON object, or without id, type or actor; ERR_UNAUTHORIZED:
 * the activity is of another server than its actor. */
MUST_CHECK bool activity_read(struct arena *arena, struct bytes body,
    struct activity *activity, struct err *err);

bool activity_is(const struct activity *activity, const char *type);
/* An actor that says it is gone. */
bool activity_is_departure(const struct activity *activity);

#endif

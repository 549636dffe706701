#include "common/fediverse/activity.h"

#include "common/net/url.h"

/* A text, or the id of what stands there; a list of one is that one. */
static const char *id_of(const struct json *value)
{
	const char *text;

	if (json_type(value) == JSON_ARRAY && json_count(value) == 1)
		value = json_element(value, 0);
	text = json_type(value) == JSON_OBJECT
	    ? json_string(json_member(value, "id"))
	    : json_string(value);
	return text && *text && strlen(text) <= ACTIVITY_URL_MAX ? text : NULL;
}

static const char *origin_of(
    struct arena *arena, const char *url, const char *what, struct err *err)
{
	struct origin origin;

	if (origin_parse(arena, url, &origin))
		return origin.text;
	err_set(err, ERR_INVALID, "%s is no usable address", what);
	return NULL;
}

static bool envelope_read(
    const struct json *value, struct activity *activity, struct err *err)
{
	activity->id = id_of(json_member(value, "id"));
	activity->type = json_string(json_member(value, "type"));
	activity->actor = id_of(json_member(value, "actor"));
	if (!activity->id)
		return err_set(err, ERR_INVALID, "the activity has no id");
	if (!activity->type || !*activity->type ||
	    strlen(activity->type) > ACTIVITY_TYPE_MAX)
		return err_set(err, ERR_INVALID, "the activity has no type");
	return activity->actor ||
	    err_set(err, ERR_INVALID, "the activity has no actor");
}

static void object_read(const struct json *object, struct activity *activity)
{
	activity->object = id_of(object);
	activity->object_type = json_string(json_member(object, "type"));
	activity->object_actor = id_of(json_member(object, "actor"));
	activity->object_object = id_of(json_member(object, "object"));
}

bool activity_read(struct arena *arena, struct bytes body,
    struct activity *activity, struct err *err)
{
	struct activity read = { .body = body };
	const struct json *value;
	const char *origin;

	if (!json_parse(arena, body, &value, err))
		return false;
	if (json_type(value) != JSON_OBJECT)
		return err_set(err, ERR_INVALID, "no JSON object");
	if (!envelope_read(value, &read, err))
		return false;
	read.origin = origin_of(arena, read.actor, "actor", err);
	origin = read.origin ? origin_of(arena, read.id, "id", err) : NULL;
	if (!origin)
		return false;
	if (strcmp(origin, read.origin) != 0)
		return err_set(err, ERR_UNAUTHORIZED,
		    "the activity is not of its actor's server");
	object_read(json_member(value, "object"), &read);
	*activity = read;
	return true;
}

bool activity_is(const struct activity *activity, const char *type)
{
	return strcmp(activity->type, type) == 0;
}

bool activity_is_departure(const struct activity *activity)
{
	return activity_is(activity, "Delete") && activity->object &&
	    strcmp(activity->object, activity->actor) == 0;
}

#include <math.h>

#include "common/base/id.h"
#include "common/base/json.h"

static const int64_t WHOLE_MAX = (int64_t)1 << 53;

static struct json_in failed_in(struct arena *arena, struct err *err)
{
	return (struct json_in){ .arena = arena, .err = err, .failed = true };
}

struct json_in json_from(
    struct arena *arena, const struct json *value, struct err *err)
{
	if (json_type(value) != JSON_OBJECT) {
		err_set(err, ERR_INVALID, "not a JSON object");
		return failed_in(arena, err);
	}
	return (struct json_in){
		.arena = arena, .value = value, .err = err, .present = true
	};
}

struct json_in json_read(
    struct arena *arena, struct bytes body, struct err *err)
{
	const struct json *value;

	if (!json_parse(arena, body, &value, err))
		return failed_in(arena, err);
	if (json_type(value) != JSON_OBJECT) {
		err_set(err, ERR_INVALID, "body must be a JSON object");
		return failed_in(arena, err);
	}
	return json_from(arena, value, err);
}

void json_fail(struct json_in *in, const char *name, const char *what)
{
	if (in->failed)
		return;
	in->failed = true;
	err_set(in->err, ERR_INVALID, "%s %s", name, what);
}

bool json_done(struct json_in *in)
{
	return !in->failed;
}

/* The member a getter is about to read; NULL when there is nothing to do. */
static const struct json *wanted(struct json_in *in, const char *name)
{
	const struct json *value;

	if (in->failed || !in->present)
		return NULL;
	value = json_member(in->value, name);
	if (!value)
		json_fail(in, name, "is required");
	return value;
}

static const struct json *offered(struct json_in *in, const char *name)
{
	const struct json *value;

	if (in->failed || !in->present)
		return NULL;
	value = json_member(in->value, name);
	return json_type(value) == JSON_NULL ? NULL : value;
}

/* ---- texts ---- */

static const char *text_of(
    struct json_in *in, const char *name, const struct json *value, size_t max)
{
	const char *text;

	if (!value)
		return NULL;
	if (json_type(value) != JSON_TEXT) {
		json_fail(in, name, "must be a string");
		return NULL;
	}
	text = json_string(value);
	if (!text) {
		json_fail(in, name, "holds a character that is not allowed");
		return NULL;
	}
	if (json_units(text) > max) {
		json_fail(in, name, "is too long");
		return NULL;
	}
	return text;
}

const char *json_text(struct json_in *in, const char *name, size_t max)
{
	const char *text = text_of(in, name, wanted(in, name), max);

	if (text && !*text) {
		json_fail(in, name, "must not be empty");
		return NULL;
	}
	return text;
}

const char *json_text_opt(struct json_in *in, const char *name, size_t max)
{
	return text_of(in, name, offered(in, name), max);
}

/* ---- ids and numbers ---- */

static int64_t id_of(
    struct json_in *in, const char *name, const struct json *value)
{
	int64_t id;

	if (!value)
		return 0;
	id = id_parse(json_string(value));
	if (!id)
		json_fail(in, name, "must be an id");
	return id;
}

int64_t json_id(struct json_in *in, const char *name)
{
	return id_of(in, name, wanted(in, name));
}

int64_t json_id_opt(struct json_in *in, const char *name)
{
	return id_of(in, name, offered(in, name));
}

static int64_t int_of(struct json_in *in, const char *name,
    const struct json *value, int64_t min, int64_t max)
{
	int64_t number;

	if (!json_whole(value, &number))
		json_fail(in, name, "must be a whole number");
	else if (number < min || number > max)
		json_fail(in, name, "is out of range");
	else
		return number;
	return 0;
}

int64_t json_int(struct json_in *in, const char *name, int64_t min, int64_t max)
{
	const struct json *value = wanted(in, name);

	return value ? int_of(in, name, value, min, max) : 0;
}

int64_t json_int_opt(struct json_in *in, const char *name, int64_t min,
    int64_t max, int64_t fallback)
{
	const struct json *value = offered(in, name);

	if (in->failed)
		return 0;
	return value ? int_of(in, name, value, min, max) : fallback;
}

static int64_t time_of(
    struct json_in *in, const char *name, const struct json *value)
{
	double real;

	if (!value)
		return 0;
	if (json_number(value, &real) && real >= 1 && real < (double)WHOLE_MAX)
		return (int64_t)real;
	json_fail(in, name, "must be a time in milliseconds");
	return 0;
}

int64_t json_time(struct json_in *in, const char *name)
{
	return time_of(in, name, wanted(in, name));
}

int64_t json_time_opt(struct json_in *in, const char *name)
{
	return time_of(in, name, offered(in, name));
}

double json_real_opt(struct json_in *in, const char *name, double fallback)
{
	const struct json *value = offered(in, name);
	double real = 0;

	if (in->failed)
		return 0;
	if (!value)
		return fallback;
	if (!json_number(value, &real))
		json_fail(in, name, "must be a number");
	return real;
}

/* ---- booleans, objects, lists ---- */

static bool is_bool(
    struct json_in *in, const char *name, const struct json *value)
{
	if (json_type(value) == JSON_BOOL)
		return true;
	json_fail(in, name, "must be true or false");
	return false;
}

bool json_bool(struct json_in *in, const char *name)
{
	const struct json *value = wanted(in, name);

	return value && is_bool(in, name, value) && json_truth(value);
}

bool json_bool_opt(struct json_in *in, const char *name, bool fallback)
{
	const struct json *value = offered(in, name);

	if (in->failed)
		return false;
	if (!value)
		return fallback;
	return is_bool(in, name, value) && json_truth(value);
}

static struct json_in object_of(
    struct json_in *in, const char *name, const struct json *value)
{
	struct json_in sub = { .arena = in->arena, .err = in->err };

	if (value && json_type(value) != JSON_OBJECT)
		json_fail(in, name, "must be an object");
	sub.failed = in->failed;
	if (!in->failed) {
		sub.value = value;
		sub.present = value != NULL;
	}
	return sub;
}

struct json_in json_object(struct json_in *in, const char *name)
{
	return object_of(in, name, wanted(in, name));
}

struct json_in json_object_opt(struct json_in *in, const char *name)
{
	return object_of(in, name, offered(in, name));
}

static const struct json *list_of(
    struct json_in *in, const char *name, const struct json *value, size_t max)
{
	if (!value)
		return NULL;
	if (json_type(value) != JSON_ARRAY) {
		json_fail(in, name, "must be an array");
		return NULL;
	}
	if (json_count(value) > max) {
		json_fail(in, name, "has too many items");
		return NULL;
	}
	return value;
}

const struct json *json_list(struct json_in *in, const char *name, size_t max)
{
	return list_of(in, name, wanted(in, name), max);
}

const struct json *json_list_opt(
    struct json_in *in, const char *name, size_t max)
{
	return list_of(in, name, offered(in, name), max);
}

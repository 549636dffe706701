/* The only file that sees json-c, whose types have some of our names. */
#define json_type jsonc_type
#define json_object jsonc_object
#define json_bool jsonc_bool
#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#undef json_type
#undef json_object
#undef json_bool

#include <limits.h>
#include <math.h>

#include "common/base/json.h"
#include "common/base/json_scan.h"

typedef struct jsonc_object node;

/* json-c's null is no object; ours is this one. */
struct json {
	char unused;
};
static const struct json null_value;

static const double WHOLE_MAX = 9007199254740992.0;

static const struct json *from_node(node *n)
{
	return n ? (const struct json *)(const void *)n : &null_value;
}

/* The value as json-c's, NULL for null and for what is absent. */
static node *to_node(const struct json *value)
{
	return value == &null_value ? NULL : (node *)(uintptr_t)value;
}

static void node_free(void *n)
{
	json_object_put(n);
}

static node *tokenize(struct bytes text)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX + 1);
	node *root;

	if (!tokener)
		abort();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	root = json_tokener_parse_ex(tokener, text.data, (int)text.len);
	/* A number at the top could go on; say that it does not. */
	if (json_tokener_get_error(tokener) == json_tokener_continue)
		root = json_tokener_parse_ex(tokener, "", 1);
	assert(json_tokener_get_error(tokener) == json_tokener_success);
	json_tokener_free(tokener);
	return root;
}

bool json_parse(struct arena *arena, struct bytes text,
    const struct json **value, struct err *err)
{
	struct bytes clean;
	node *root;

	if (text.len >= INT_MAX)
		return err_set(err, ERR_TOO_LARGE, "JSON text too large");
	if (!json_scan(arena, text, &clean, err))
		return false;
	root = tokenize(clean);
	if (root)
		arena_at_end(arena, node_free, root);
	*value = from_node(root);
	return true;
}

enum json_type json_type(const struct json *value)
{
	if (!value)
		return JSON_ABSENT;
	switch (json_object_get_type(to_node(value))) {
	case json_type_null:
		return JSON_NULL;
	case json_type_boolean:
		return JSON_BOOL;
	case json_type_double:
	case json_type_int:
		return JSON_NUMBER;
	case json_type_string:
		return JSON_TEXT;
	case json_type_array:
		return JSON_ARRAY;
	case json_type_object:
		return JSON_OBJECT;
	}
	abort();
}

const struct json *json_member(const struct json *value, const char *name)
{
	node *found;

	if (json_type(value) != JSON_OBJECT ||
	    !json_object_object_get_ex(to_node(value), name, &found))
		return NULL;
	return from_node(found);
}

size_t json_count(const struct json *value)
{
	if (json_type(value) != JSON_ARRAY)
		return 0;
	return json_object_array_length(to_node(value));
}

const struct json *json_element(const struct json *value, size_t place)
{
	if (place >= json_count(value))
		return NULL;
	return from_node(json_object_array_get_idx(to_node(value), place));
}

const char *json_string(const struct json *value)
{
	const char *text;

	if (json_type(value) != JSON_TEXT)
		return NULL;
	text = json_object_get_string(to_node(value));
	return strlen(text) ==
		(size_t)json_object_get_string_len(to_node(value))
	    ? text
	    : NULL;
}

bool json_number(const struct json *value, double *number)
{
	double real;

	if (json_type(value) != JSON_NUMBER)
		return false;
	real = json_object_get_double(to_node(value));
	if (!isfinite(real))
		return false;
	*number = real;
	return true;
}

bool json_whole(const struct json *value, int64_t *number)
{
	double real;

	/* Integers that a double cannot hold round to at least the bound. */
	if (!json_number(value, &real) || real != trunc(real) ||
	    fabs(real) > WHOLE_MAX)
		return false;
	if (json_object_is_type(to_node(value), json_type_int) &&
	    llabs(json_object_get_int64(to_node(value))) > (1LL << 53))
		return false;
	*number = (int64_t)real;
	return true;
}

bool json_truth(const struct json *value)
{
	return json_type(value) == JSON_BOOL &&
	    json_object_get_boolean(to_node(value));
}

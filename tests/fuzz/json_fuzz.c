/*
 * json_fuzz -- any bytes, through the JSON reader and back.
 *
 * What is accepted must have come through json-c whole, be written again,
 * and read back to the same bytes.
 */
#include "common/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 1 << 20 };

static void write_value(struct json_out *out, const struct json *value);

static void write_list(struct json_out *out, const struct json *value)
{
	json_open_list(out, NULL);
	for (size_t i = 0; i < json_count(value); i++)
		write_value(out, json_element(value, i));
	json_close_list(out);
}

static void write_number(struct json_out *out, const struct json *value)
{
	double real = 0;

	if (json_number(value, &real))
		json_put_real(out, NULL, real);
	else
		json_put_null(out, NULL);
}

/* Depth is bounded by the parser. */
static void write_value(struct json_out *out, const struct json *value)
{
	switch (json_type(value)) {
	case JSON_ABSENT:
		abort();
	case JSON_NULL:
	case JSON_OBJECT:
		json_put_null(out, NULL);
		break;
	case JSON_BOOL:
		json_put_bool(out, NULL, json_truth(value));
		break;
	case JSON_NUMBER:
		write_number(out, value);
		break;
	case JSON_TEXT:
		json_put_text(out, NULL, json_string(value));
		break;
	case JSON_ARRAY:
		write_list(out, value);
		break;
	}
}

static bool round_trip(struct arena *arena, struct bytes text, struct buf *out)
{
	struct json_out json = { .buf = out };
	const struct json *value;
	struct err err = { 0 };

	buf_init(out, arena, MAX);
	if (!json_parse(arena, text, &value, &err)) {
		assert(err.code == ERR_INVALID && err.text[0]);
		return false;
	}
	write_value(&json, value);
	return buf_ok(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct buf once;
	struct buf twice;

	if (round_trip(arena, (struct bytes){ data, size }, &once)) {
		assert(round_trip(arena, buf_bytes(&once), &twice));
		assert(once.len == twice.len &&
		    memcmp(once.data, twice.data, once.len) == 0);
	}
	arena_free(&arena);
	return 0;
}

#include "tests/wire/recording.h"

#include <criterion/criterion.h>

#include "common/base/clock.h"

enum { FILE_MAX = 4 << 20 };

static struct bytes file_read(struct arena *arena, const char *path)
{
	FILE *file = fopen(path, "r");
	char *data = arena_alloc(arena, FILE_MAX);
	size_t len;

	cr_assert(file, "no recording %s", path);
	len = fread(data, 1, FILE_MAX, file);
	fclose(file);
	return (struct bytes){ data, len };
}

/* Bodies that were cut in the file end with the filler of the full one. */
static struct bytes body_whole(struct arena *arena, const struct json *request)
{
	const char *text = json_string(json_member(request, "body"));
	int64_t length;
	char *body;

	if (!text)
		text = "";
	if (!json_whole(json_member(request, "bodyLength"), &length))
		return (struct bytes){ text, strlen(text) };
	body = arena_alloc(arena, (size_t)length + 1);
	memset(body, 'x', (size_t)length);
	memcpy(body, text, strlen(text));
	memcpy(body + length - 2, "\"}", 2);
	return (struct bytes){ body, (size_t)length };
}

static const char *text_of(const struct json *value, const char *name)
{
	return json_string(json_member(value, name));
}

static struct exchange exchange_read(
    struct arena *arena, const struct json *value)
{
	const struct json *request = json_member(value, "request");
	const struct json *response = json_member(value, "response");
	const struct json *valid = json_member(value, "signatureValid");
	struct err err = { 0 };
	struct json_in in = json_from(arena, value, &err);
	struct exchange exchange = {
		.from = text_of(value, "from"),
		.to = text_of(value, "to"),
		.at = json_time(&in, "at"),
		.method = text_of(request, "method"),
		.path = text_of(request, "path"),
		.headers = json_member(request, "headers"),
		.body = body_whole(arena, request),
		.answer = text_of(response, "body"),
		.secret = text_of(value, "secret"),
		.is_signed = json_type(valid) == JSON_BOOL,
		.signature_valid = json_bool_opt(&in, "signatureValid", false),
		.signature_over = text_of(value, "signatureOver"),
		.fault = text_of(value, "fault"),
		.note = text_of(value, "note"),
	};
	int64_t status = 0;

	if (json_whole(json_member(response, "status"), &status))
		exchange.status = (int)status;
	cr_assert(json_done(&in), "%s", err.text);
	return exchange;
}

void recording_check(void)
{
	if (!getenv("POSTRIDER_WIRE"))
		cr_skip_test("the recordings are not here (POSTRIDER_WIRE)");
}

struct recording recording_load_of(
    struct arena *arena, const char *version, const char *name)
{
	const char *dir = getenv("POSTRIDER_WIRE");
	const struct json *list = NULL;
	struct recording recording = { 0 };
	struct err err = { 0 };

	cr_assert(json_parse(arena,
		      file_read(arena,
			  arena_printf(arena, "%s/%s/%s.json", dir,
			      version ? version : "backspace-626a8ded", name)),
		      &list, &err),
	    "%s: %s", name, err.text);
	recording.count = json_count(list);
	recording.exchanges =
	    arena_array(arena, recording.count, sizeof(*recording.exchanges));
	for (size_t i = 0; i < recording.count; i++)
		recording.exchanges[i] =
		    exchange_read(arena, json_element(list, i));
	return recording;
}

struct recording recording_load(struct arena *arena, const char *name)
{
	return recording_load_of(arena, NULL, name);
}

const char *exchange_header(const struct exchange *exchange, const char *name)
{
	static const char *const spellings[][2] = {
		{ "x-federation-signature", "X-Federation-Signature" },
		{ "x-federation-origin", "X-Federation-Origin" },
		{ "x-federation-timestamp", "X-Federation-Timestamp" },
		{ "x-federation-nonce", "X-Federation-Nonce" },
		{ "content-type", "Content-Type" },
	};
	const char *value = NULL;

	for (size_t i = 0; i < COUNT(spellings); i++)
		for (size_t j = 0; j < 2 && !value; j++)
			if (!strcmp(name, spellings[i][0]))
				value =
				    text_of(exchange->headers, spellings[i][j]);
	return value;
}

bool exchange_has_only(
    struct arena *arena, const struct exchange *exchange, const char *types)
{
	const struct json *body = NULL;
	const struct json *events;
	struct err err = { 0 };
	bool only;

	if (!json_parse(arena, exchange->body, &body, &err))
		return false;
	events = json_member(body, "events");
	only = json_count(events) > 0;
	for (size_t i = 0; only && i < json_count(events); i++) {
		const char *type =
		    text_of(json_element(events, i), "eventType");
		const char *spaced =
		    arena_printf(arena, " %s ", type ? type : "");

		only =
		    strstr(arena_printf(arena, " %s ", types), spaced) != NULL;
	}
	return only;
}

const char *text_replaced(
    struct arena *arena, const char *text, const char *what, const char *by)
{
	struct buf out;
	const char *at;

	buf_init(&out, arena, 1 << 22);
	while ((at = strstr(text, what))) {
		buf_add(&out, text, (size_t)(at - text));
		buf_text(&out, by);
		text = at + strlen(what);
	}
	buf_text(&out, text);
	return out.data;
}

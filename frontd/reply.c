#include "common/base/id.h"
#include "frontd/dispatch.h"
#include "frontd/reply.h"

enum { REPLY_MAX = 32 * 1024 * 1024 };

/* ---- what a handler asks about its path ---- */

const char *path_text(const struct request *req, const char *name)
{
	const struct match *match = call_match(req);

	for (size_t i = 0; i < match->param_count; i++)
		if (strcmp(match->params[i].name, name) == 0)
			return match->params[i].value;
	return "";
}

int64_t path_id(const struct request *req, const char *name)
{
	return id_parse(path_text(req, name));
}

const char *query_text(const struct request *req, const char *name)
{
	const char *value = http_query_get(req->arena, req->head->query, name);

	return value ? value : "";
}

/* ---- what it answers ---- */

static void reply_begin(struct request *req, int status)
{
	req->status = status;
	req->reply_type = NULL;
	buf_init(&req->reply, req->arena, REPLY_MAX);
}

bool reply_json(struct request *req, int status, const char *json)
{
	reply_begin(req, status);
	buf_text(&req->reply, json);
	return true;
}

bool reply_shape(struct request *req, int status, const struct shape *shape,
    const void *record)
{
	reply_begin(req, status);
	json_write_shape(&req->reply, shape, record);
	return true;
}

bool reply_as(
    struct request *req, int status, const char *type, const char *text)
{
	reply_json(req, status, text);
	req->reply_type = type;
	return true;
}

bool reply_success(struct request *req)
{
	return reply_json(req, 200, "{\"success\":true}");
}

bool reply_text(struct request *req, int status, const char *text)
{
	struct json_out out = { .buf = &req->reply };

	reply_begin(req, status);
	json_open(&out, NULL);
	json_put_text(&out, "error", text);
	json_put_int(&out, "statusCode", status);
	json_close(&out);
	return true;
}

void reply_header(struct request *req, const char *name, const char *value)
{
	assert(req->reply_header_count < COUNT(req->reply_headers));
	req->reply_headers[req->reply_header_count++] =
	    (struct http_header){ name, value };
}

bool request_park_all(struct request *req, const struct ask *asks, size_t count,
    bool (*after)(struct request *req, struct err *err))
{
	int64_t *ids = arena_array(req->arena, count, sizeof(*ids));
	int64_t deadline = 0;

	assert(count > 0);
	for (size_t i = 0; i < count; i++) {
		assert(asks[i].id && asks[i].deadline);
		ids[i] = asks[i].id;
		if (deadline < asks[i].deadline)
			deadline = asks[i].deadline;
	}
	req->parked_ask = ids[0];
	req->parked_asks = ids;
	req->parked_count = count;
	req->after = after;
	call_park_until(req, deadline);
	return true;
}

bool request_park(struct request *req, const struct ask *ask,
    bool (*after)(struct request *req, struct err *err))
{
	return request_park_all(req, ask, 1, after);
}

/* ---- errors ---- */

/* What the caller may read of it. */
static const char *public_text(const struct err *err)
{
	if (err->code == ERR_BUSY)
		return "Server is busy, try again shortly";
	if (err->code == ERR_BUG)
		return "Internal server error";
	return err->text;
}

static int retry_after_s(const struct err *err)
{
	if (err->retry_after_s)
		return err->retry_after_s;
	return err->code == ERR_BUSY ? 1 : 0;
}

void reply_error(struct request *req, const struct err *err)
{
	int status = err_rules[err->code].http;
	struct json_out out = { .buf = &req->reply };

	reply_begin(req, status);
	req->reply_header_count = 0;
	json_open(&out, NULL);
	json_put_text(&out, "error", public_text(err));
	if (err->http_code)
		json_put_text(&out, "code", err->http_code);
	json_put_int(&out, "statusCode", status);
	if (err->code == ERR_TOO_MANY && err->retry_after_s)
		json_put_int(&out, "retryAfter", err->retry_after_s);
	json_close(&out);
	if (retry_after_s(err))
		reply_header(req, "retry-after",
		    arena_printf(req->arena, "%d", retry_after_s(err)));
}

static void layer_write(
    struct buf *buf, int status, const char *code, const char *message)
{
	struct json_out out = { .buf = buf };

	json_open(&out, NULL);
	json_put_int(&out, "statusCode", status);
	if (code)
		json_put_text(&out, "code", code);
	json_put_text(&out, "error",
	    status == 413 ? "Payload Too Large" : http_reason(status));
	json_put_text(&out, "message", message);
	json_close(&out);
}

void reply_bad_json(struct request *req, const char *message)
{
	reply_begin(req, 400);
	req->reply_header_count = 0;
	layer_write(&req->reply, 400, NULL, message);
}

void reply_layer(struct arena *arena, struct http_reply *reply, int status,
    const char *code, const char *message)
{
	struct buf buf;

	buf_init(&buf, arena, REPLY_MAX);
	layer_write(&buf, status, code, message);
	reply->status = status;
	reply->body = buf_bytes(&buf);
}

void reply_plain(
    struct arena *arena, struct http_reply *reply, int status, const char *text)
{
	struct buf buf;
	struct json_out out = { .buf = &buf };

	buf_init(&buf, arena, REPLY_MAX);
	json_open(&out, NULL);
	json_put_text(&out, "error", text);
	json_put_int(&out, "statusCode", status);
	json_close(&out);
	reply->status = status;
	reply->body = buf_bytes(&buf);
}

#include "common/base/id.h"
#include "common/chat/message.h"
#include "common/federation/outbox_message.h"
#include "frontd/target.h"

enum {
	PAGE_DEFAULT = 50,
	EVENTS_DEFAULT = 100,
	EVENTS_MAX = 500,
	CONTENT_READ_MAX = 1024 * 1024,
	BODY_MAX = 1024 * 1024
};

/* ---- conversations ---- */

/* GET /api/dm */
static bool dm_list(struct request *req, struct err *err)
{
	const char *json;

	return channel_list_json(req->tx, req->user.id, &json, err) &&
	    reply_json(req, 200, json);
}

/* POST /api/dm */
static bool dm_open(struct request *req, struct err *err)
{
	struct channel channel;
	struct user target;
	const char *json;
	bool created;

	return target_read(req, &target, err) &&
	    channel_open_pair(
		req->tx, &req->user, &target, &channel, &created, err) &&
	    channel_json(req->tx, channel.id, created, &json, err) &&
	    reply_json(req, created ? 201 : 200, json);
}

/* DELETE /api/dm/:id */
static bool dm_close(struct request *req, struct err *err)
{
	struct channel channel;
	int64_t id = path_id(req, "id");

	return channel_check_member(req->tx, id, req->user.id, &channel, err) &&
	    channel_close_for(req->tx, id, req->user.id, err) &&
	    reply_success(req);
}

/* ---- messages ---- */

/* A whole number of the query: 0 when it is none. */
static int64_t query_number(const struct request *req, const char *name)
{
	const char *text = query_text(req, name);
	size_t len = strlen(text);

	if (len == 0 || len > 15 || strspn(text, "0123456789") != len)
		return 0;
	return strtoll(text, NULL, 10);
}

/* Clamped to 1..max; what is no number, or 0, means the fallback. */
static int64_t query_limit(
    const struct request *req, int64_t fallback, int64_t max)
{
	int64_t limit = strtoll(query_text(req, "limit"), NULL, 10);

	if (limit == 0)
		return fallback;
	if (limit < 1)
		return 1;
	return limit < max ? limit : max;
}

/* GET /api/dm/:id/messages */
static bool dm_messages(struct request *req, struct err *err)
{
	const char *before = query_text(req, "before");
	int64_t id = path_id(req, "id");
	struct channel channel;
	const char *json;

	if (*before && !id_parse(before))
		return err_set(err, ERR_INVALID, "before must be an id");
	return channel_check_member(req->tx, id, req->user.id, &channel, err) &&
	    message_page_json(req->tx, id, id_parse(before),
		query_limit(req, PAGE_DEFAULT, MESSAGE_PAGE_MAX), &json, err) &&
	    reply_json(req, 200, json);
}

static void files_read(
    struct request *req, struct json_in *in, struct draft *draft)
{
	const struct json *list =
	    json_list_opt(in, "attachments", MESSAGE_FILES_MAX);
	size_t count = json_count(list);
	int64_t *files = arena_array(req->arena, count + 1, sizeof(*files));

	for (size_t i = 0; i < count; i++) {
		files[i] = id_parse(json_string(json_element(list, i)));
		if (!files[i])
			json_fail(in, "attachments", "must be a list of ids");
	}
	draft->files = files;
	draft->file_count = count;
}

static bool reply_message(
    struct request *req, int status, int64_t id, struct err *err)
{
	const char *json;

	return message_json(req->tx, id, &json, err) &&
	    reply_json(req, status, json);
}

/* POST /api/dm/:id/messages */
static bool dm_message_post(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	struct draft draft = {
		.channel = path_id(req, "id"),
		.author = req->user.id,
		.content = json_text_opt(&in, "content", CONTENT_READ_MAX),
		.reply_to = json_id_opt(&in, "replyToId"),
	};
	struct channel channel;
	struct message msg;

	files_read(req, &in, &draft);
	return json_done(&in) &&
	    channel_check_member(
		req->tx, draft.channel, req->user.id, &channel, err) &&
	    message_create(req->tx, &draft, &msg, err) &&
	    outbox_add_message(req->tx, req->node, "create", &msg, NULL, err) &&
	    reply_message(req, 201, msg.id, err);
}

/* PATCH /api/dm/messages/:id */
static bool dm_message_patch(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const char *content = json_text(&in, "content", CONTENT_READ_MAX);
	int64_t id = path_id(req, "id");
	struct message msg;

	return json_done(&in) &&
	    message_edit(req->tx, id, req->user.id, content, &msg, err) &&
	    outbox_add_message(req->tx, req->node, "update", &msg, NULL, err) &&
	    reply_message(req, 200, id, err);
}

/* DELETE /api/dm/messages/:id */
static bool dm_message_delete(struct request *req, struct err *err)
{
	struct message msg;

	return message_delete(
		   req->tx, path_id(req, "id"), req->user.id, &msg, err) &&
	    outbox_add_message(req->tx, req->node, "delete", &msg, NULL, err) &&
	    reply_success(req);
}

/* ---- GET /api/conversations/:id/events ---- */

static void events_write(struct buf *buf, const struct event_page *page)
{
	struct json_out out = { .buf = buf };
	struct bytes list;
	struct buf rows;

	buf_init(&rows, buf->arena, 1024 * 1024);
	json_write_rows(&rows, conversation_event_shape, &page->events);
	list = buf_bytes(&rows);
	json_open(&out, NULL);
	json_put_raw(&out, "events", list);
	json_put_int(&out, "seq", page->seq);
	json_put_bool(&out, "hasMore", page->has_more);
	json_close(&out);
}

static bool conversation_events(struct request *req, struct err *err)
{
	int64_t id = path_id(req, "id");
	int64_t since = query_number(req, "since");
	struct channel channel;
	struct event_page page;

	if (!channel_check_member(req->tx, id, req->user.id, &channel, err) ||
	    !channel_events_since(req->tx, id, since,
		query_limit(req, EVENTS_DEFAULT, EVENTS_MAX), &page, err))
		return false;
	if (page.gone)
		return reply_json(req, 410,
		    "{\"error\":\"Events before this are no longer kept\","
		    "\"statusCode\":410}");
	reply_json(req, 200, "");
	events_write(&req->reply, &page);
	return true;
}

/* clang-format off */
const struct route dm_routes[] = {
	{ "GET",    "/api/dm",                       USER, 1024,     0, 0,    dm_list },
	{ "POST",   "/api/dm",                       USER, BODY_MAX, 0, 0,    dm_open },
	{ "DELETE", "/api/dm/:id",                   USER, 1024,     0, 0,    dm_close },
	{ "GET",    "/api/dm/:id/messages",          USER, 1024,     0, 0,    dm_messages },
	{ "POST",   "/api/dm/:id/messages",          USER, BODY_MAX, 5, 5000, dm_message_post },
	{ "PATCH",  "/api/dm/messages/:id",          USER, BODY_MAX, 0, 0,    dm_message_patch },
	{ "DELETE", "/api/dm/messages/:id",          USER, 1024,     0, 0,    dm_message_delete },
	{ "GET",    "/api/conversations/:id/events", USER, 1024,     0, 0,    conversation_events },
	{ .method = NULL }
};
/* clang-format on */

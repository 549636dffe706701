#include "common/base/id.h"
#include "common/chat/read_state.h"
#include "common/federation/outbox_read_state.h"
#include "frontd/request.h"

enum { BODY_MAX = 1024, ID_MAX = 24 };

static bool reply_state(struct request *req, int64_t channel, int64_t message)
{
	reply_json(req, 200, "");
	struct json_out out = { .buf = &req->reply };

	json_open(&out, NULL);
	json_put_id(&out, "channelId", channel);
	json_put_text(
	    &out, "messageId", message ? id_text(req->arena, message) : "0");
	json_close(&out);
	return true;
}

/* POST /api/dm/:id/ack */
static bool read_ack(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	struct read_mark mark = {
		.user = req->user.id,
		.channel = path_id(req, "id"),
		.message = json_id(&in, "messageId"),
	};
	struct channel channel;
	int64_t reached;

	return json_done(&in) &&
	    channel_check_member(
		req->tx, mark.channel, mark.user, &channel, err) &&
	    read_state_ack(req->tx, &mark, &reached, err) &&
	    outbox_add_read_state(req->tx, req->node, &mark, NULL, err) &&
	    reply_state(req, mark.channel, reached);
}

/* "0" is the beginning. */
static int64_t position_read(struct json_in *in)
{
	const char *text = json_text(in, "messageId", ID_MAX);
	int64_t id = text ? id_parse(text) : 0;

	if (text && !id && strcmp(text, "0") != 0)
		json_fail(in, "messageId", "must be an id or \"0\"");
	return id;
}

/* POST /api/dm/:id/mark-unread */
static bool read_mark_unread(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	int64_t message = position_read(&in);
	int64_t id = path_id(req, "id");
	struct channel channel;

	return json_done(&in) &&
	    channel_check_member(req->tx, id, req->user.id, &channel, err) &&
	    read_state_mark_unread(req->tx, id, req->user.id, message, err) &&
	    reply_state(req, id, message);
}

/* GET /api/dm/read-states */
static bool read_list(struct request *req, struct err *err)
{
	const char *json;

	return read_states_json(req->tx, req->user.id, &json, err) &&
	    reply_json(req, 200, json);
}

/* clang-format off */
const struct route read_routes[] = {
	{ "GET",  "/api/dm/read-states",     USER, BODY_MAX, 0, 0, read_list },
	{ "POST", "/api/dm/:id/ack",         USER, BODY_MAX, 0, 0, read_ack },
	{ "POST", "/api/dm/:id/mark-unread", USER, BODY_MAX, 0, 0, read_mark_unread },
	{ .method = NULL }
};
/* clang-format on */

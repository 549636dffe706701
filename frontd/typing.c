#include "common/chat/channel.h"
#include "common/chat/typing.h"
#include "common/federation/typing_send.h"
#include "frontd/request.h"

enum { BODY_MAX = 1024 };

/* {"typing": false} is a stop; without a body it is a start. */
static bool starts_read(struct request *req, bool *starts, struct err *err)
{
	struct json_in in;

	*starts = true;
	if (req->body.len == 0)
		return true;
	in = json_read(req->arena, req->body, err);
	*starts = json_bool_opt(&in, "typing", true);
	return json_done(&in);
}

/* POST /api/dm/:id/typing */
static bool typing_post(struct request *req, struct err *err)
{
	int64_t id = path_id(req, "id");
	struct channel channel;
	bool starts;

	if (!starts_read(req, &starts, err) ||
	    !channel_check_member(req->tx, id, req->user.id, &channel, err) ||
	    !typing_send(req->tx, req->node, id, req->user.id, starts, err))
		return false;
	typing_signal(req->tx, id, req->user.id, req->user.username, starts);
	return reply_success(req);
}

/* clang-format off */
const struct route typing_routes[] = {
	{ "POST", "/api/dm/:id/typing", USER, BODY_MAX, 0, 0, typing_post },
	{ .method = NULL }
};
/* clang-format on */

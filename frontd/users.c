#include "frontd/request.h"

/* GET /api/users/@me */
static bool user_me(struct request *req, struct err *err UNUSED)
{
	reply_json(req, 200, "");
	user_write(&req->reply, &req->user, true);
	return true;
}

/* clang-format off */
const struct route user_routes[] = {
	{ "GET", "/api/users/@me", USER, 1024, 0, 0, user_me },
	{ .method = NULL }
};
/* clang-format on */

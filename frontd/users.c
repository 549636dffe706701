#include "frontd/account.h"
#include "frontd/identity.h"
#include "frontd/profile.h"
#include "frontd/registry.h"
#include "frontd/request.h"

enum { BODY_MAX = 1024 * 1024, QUARTER_MS = 900000 };

/* GET /api/users/@me */
static bool user_me(struct request *req, struct err *err UNUSED)
{
	reply_json(req, 200, "");
	user_write(&req->reply, &req->user, true);
	return true;
}

/* GET /api/users/@me/join-requests: there are no spaces to join. */
static bool user_join_requests(struct request *req, struct err *err UNUSED)
{
	return reply_json(req, 200, "{\"requests\":[]}");
}

/* clang-format off */
const struct route user_routes[] = {
	{ "GET",    "/api/users/@me",         USER,          1024,     0, 0,          user_me },
	{ "PATCH",  "/api/users/@me",         USER,          BODY_MAX, 0, 0,          profile_patch },
	{ "DELETE", "/api/users/@me",         PASSWORD_USER, BODY_MAX, 3, QUARTER_MS, account_delete },
	{ "GET",    "/api/users/:id",         USER,          1024,     0, 0,          profile_get },
	{ "GET",    "/api/users/:id/mutuals", USER,          1024,     0, 0,          profile_mutuals },
	{ "POST",   "/api/users/@me/verify-password", PASSWORD_USER, BODY_MAX, 0, 0,  account_verify },
	{ "POST",   "/api/users/@me/change-password", PASSWORD_USER, BODY_MAX, 5, QUARTER_MS, account_change },
	{ "GET",    "/api/users/@me/federation-registry", USER, 1024,     0, 0,       registry_get },
	{ "PUT",    "/api/users/@me/federation-registry", USER, BODY_MAX, 0, 0,       registry_put },
	{ "POST",   "/api/users/@me/federation-identity/delete", USER, BODY_MAX, 5, QUARTER_MS, identity_leave },
	{ "GET",    "/api/users/@me/join-requests", USER, 1024, 0, 0,                 user_join_requests },
	{ .method = NULL }
};
/* clang-format on */

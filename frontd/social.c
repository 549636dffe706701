#include "common/chat/directory.h"
#include "common/chat/friend.h"
#include "common/chat/friend_list.h"
#include "common/federation/outbox_friend.h"
#include "frontd/request.h"
#include "frontd/target.h"

enum { BODY_MAX = 1024 * 1024, NAME_MAX_UNITS = 1000 };

/* ---- lists ---- */

/* GET /api/social/friends */
static bool friends_get(struct request *req, struct err *err)
{
	const char *json;

	return friends_json(req->tx, req->user.id, &json, err) &&
	    reply_json(req, 200, json);
}

/* GET /api/social/requests */
static bool requests_get(struct request *req, struct err *err)
{
	const char *json;

	return friend_requests_json(req->tx, req->user.id, &json, err) &&
	    reply_json(req, 200, json);
}

/* ---- one pair ---- */

static bool pair_open(struct request *req, int64_t other,
    struct friend_pair *pair, struct err *err)
{
	*pair = friend_pair_of(req->user.id, other);
	if (!friends_lock(req->tx, pair, 1, err) ||
	    !friends_read(req->tx, pair, 1, err))
		return false;
	if (pair->is_dead)
		return err_set(err, ERR_ABSENT, "User not found");
	return true;
}

static bool announce(
    struct request *req, const struct friend_news *news, struct err *err)
{
	return outbox_add_friend(req->tx, req->node, news, NULL, err);
}

/* ---- POST /api/social/requests ---- */

static bool may_ask(
    const struct request *req, const struct friend_pair *pair, struct err *err)
{
	if (pair->is.since)
		return err_set(err, ERR_INVALID, "You are already friends");
	if (pair->is.asker == req->user.id)
		return err_set(
		    err, ERR_INVALID, "Friend request already pending");
	if (pair->is.asker)
		return err_set(err, ERR_INVALID,
		    "This user has already sent you a friend request");
	return true;
}

static bool reply_asked(struct request *req, int64_t id)
{
	struct json_out out = { .buf = &req->reply };

	reply_json(req, 201, "");
	json_open(&out, NULL);
	json_put_bool(&out, "success", true);
	json_put_id(&out, "requestId", id);
	json_close(&out);
	return true;
}

/* By name, or as everywhere else. */
static bool asked_read(
    struct request *req, struct user *target, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const char *name = json_text_opt(&in, "username", NAME_MAX_UNITS);

	if (!json_done(&in))
		return false;
	if (name && *name)
		return target_by_name(req, name, target, err);
	if (json_member(in.value, "userId") ||
	    json_member(in.value, "homeUserId"))
		return target_of(req, &in, target, err);
	return err_set(err, ERR_INVALID, "username is required");
}

static bool request_post(struct request *req, struct err *err)
{
	struct friend_news news = { .type = NEWS_REQUEST_CREATE };
	struct friend_pair pair;
	struct user target = { 0 };

	if (!asked_read(req, &target, err))
		return false;
	if (target.id == req->user.id)
		return err_set(err, ERR_INVALID,
		    "You cannot send a friend request to yourself");
	if (!pair_open(req, target.id, &pair, err) || !may_ask(req, &pair, err))
		return false;
	news.from = news.actor = req->user.id;
	news.to = target.id;
	news.created_at = news.at = friend_time(&pair);
	friend_ask(&pair, req->user.id, news.at);
	return friends_write(req->tx, &pair, 1, err) &&
	    announce(req, &news, err) && reply_asked(req, pair.is.request);
}

/* ---- /api/social/requests/:id ---- */

/* Under the pair's lock it must still be pending. */
static bool request_open(struct request *req, bool as_asker,
    struct friend_request *request, struct friend_pair *pair, struct err *err)
{
	int64_t me = req->user.id;

	if (!friend_request_by_id(req->tx, path_id(req, "id"), request, err))
		return false;
	if (as_asker ? request->from_id != me : request->to_id != me) {
		if (request->from_id != me && request->to_id != me)
			return err_set(
			    err, ERR_FORBIDDEN, "Not your friend request");
		return err_set(err, ERR_FORBIDDEN,
		    as_asker
			? "Only the sender can cancel a friend request"
			: "Only the recipient can answer a friend request");
	}
	if (!pair_open(
		req, as_asker ? request->to_id : request->from_id, pair, err))
		return false;
	return pair->is.request == request->id ||
	    err_set(err, ERR_INVALID, "Friend request is no longer pending");
}

static bool announce_friends(struct request *req, struct friend_news news,
    int64_t since, struct err *err)
{
	news.type = NEWS_FRIEND_ADD;
	news.status = NULL;
	news.created_at = since;
	return announce(req, &news, err);
}

static bool request_patch(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const char *status = json_text(&in, "status", 16);
	struct friend_news news = { .type = NEWS_REQUEST_UPDATE };
	struct friend_request request;
	struct friend_pair pair;
	bool accepted;

	if (!json_done(&in))
		return false;
	accepted = strcmp(status, "accepted") == 0;
	if (!accepted && strcmp(status, "declined") != 0)
		return err_set(
		    err, ERR_INVALID, "status must be accepted or declined");
	if (!request_open(req, false, &request, &pair, err))
		return false;
	news.from = request.from_id;
	news.to = news.actor = req->user.id;
	news.status = status;
	news.created_at = pair.is.asked_at;
	news.at = friend_time(&pair);
	if (accepted)
		friend_accept(&pair, news.from, pair.is.asked_at, news.at);
	else
		friend_decline(&pair, news.from, pair.is.asked_at);
	return friends_write(req->tx, &pair, 1, err) &&
	    announce(req, &news, err) &&
	    (!accepted || announce_friends(req, news, pair.is.since, err)) &&
	    reply_success(req);
}

static bool request_delete(struct request *req, struct err *err)
{
	struct friend_news news = { .type = NEWS_REQUEST_CANCEL };
	struct friend_request request;
	struct friend_pair pair;

	if (!request_open(req, true, &request, &pair, err))
		return false;
	news.from = news.actor = req->user.id;
	news.to = request.to_id;
	news.created_at = pair.is.asked_at;
	news.at = friend_time(&pair);
	friend_withdraw(&pair, news.from, pair.is.asked_at);
	return friends_write(req->tx, &pair, 1, err) &&
	    announce(req, &news, err) && reply_success(req);
}

/* ---- DELETE /api/social/friends/:id ---- */

static bool friend_delete(struct request *req, struct err *err)
{
	struct friend_news news = { .type = NEWS_FRIEND_REMOVE };
	int64_t friend = path_id(req, "id");
	struct friend_pair pair;

	if (!friend || friend == req->user.id)
		return err_set(err, ERR_ABSENT, "Friend not found");
	if (!pair_open(req, friend, &pair, err))
		return false;
	if (!pair.is.since)
		return err_set(err, ERR_ABSENT, "Friend not found");
	news.from = news.actor = req->user.id;
	news.to = friend;
	news.created_at = news.at = friend_time(&pair);
	pair.ender = req->user.id;
	friend_end(&pair, news.at);
	return friends_write(req->tx, &pair, 1, err) &&
	    announce(req, &news, err) && reply_success(req);
}

/* ---- finding people ---- */

enum { PAGE_DEFAULT = 24, PAGE_MAX = 100, OFFSET_MAX = 1000000 };

/* A whole number of the query, within its bounds; the fallback for anything
 * else. */
static int64_t query_number(const struct request *req, const char *name,
    int64_t fallback, int64_t min, int64_t max)
{
	const char *text = query_text(req, name);
	size_t len = strlen(text);
	int64_t number;

	if (len == 0 || len > 12 || strspn(text, "0123456789") != len)
		return fallback;
	number = strtoll(text, NULL, 10);
	if (number < min)
		return min;
	return number < max ? number : max;
}

static bool words_read(
    const struct request *req, const char **words, struct err *err)
{
	*words = json_trim(req->arena, query_text(req, "q"));
	return json_units(*words) <= DIRECTORY_QUERY_MAX ||
	    err_set(err, ERR_INVALID, "q is too long");
}

/* GET /api/social/search */
static bool search_get(struct request *req, struct err *err)
{
	const char *words, *json;

	return words_read(req, &words, err) &&
	    directory_search_json(req->tx, req->user.id, words, &json, err) &&
	    reply_json(req, 200, json);
}

/* GET /api/social/discover */
static bool discover_get(struct request *req, struct err *err)
{
	int64_t limit = query_number(req, "limit", PAGE_DEFAULT, 1, PAGE_MAX);
	int64_t offset = query_number(req, "offset", 0, 0, OFFSET_MAX);
	const char *words, *json;

	return words_read(req, &words, err) &&
	    directory_browse_json(
		req->tx, req->user.id, words, limit, offset, &json, err) &&
	    reply_json(req, 200, json);
}

/* clang-format off */
const struct route social_routes[] = {
	{ "GET",    "/api/social/search",       USER, 1024,     30, 60000, search_get },
	{ "GET",    "/api/social/discover",     USER, 1024,     30, 60000, discover_get },
	{ "GET",    "/api/social/friends",      USER, 1024,     0, 0, friends_get },
	{ "DELETE", "/api/social/friends/:id",  USER, 1024,     0, 0, friend_delete },
	{ "GET",    "/api/social/requests",     USER, 1024,     0, 0, requests_get },
	{ "POST",   "/api/social/requests",     USER, BODY_MAX, 0, 0, request_post },
	{ "PATCH",  "/api/social/requests/:id", USER, BODY_MAX, 0, 0, request_patch },
	{ "DELETE", "/api/social/requests/:id", USER, 1024,     0, 0, request_delete },
	{ .method = NULL }
};
/* clang-format on */

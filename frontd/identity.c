#include "frontd/identity.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/chat/registry.h"
#include "common/federation/departure.h"
#include "common/federation/peer.h"
#include "common/federation/person.h"
#include "frontd/signed.h"

enum {
	ASK_MS = 15000,
	ORIGINS_MAX = 100,
	ORIGIN_MAX = 512,
	MODE_MAX = 16,
	BODY_MAX_BYTES = 4096
};

/* ---- DELETE /api/federation/identity ---- */

struct demand {
	const char *home_user_id;
	const char *home_instance;
	enum departure_mode mode;
};

static bool demand_read(
    struct request *req, struct demand *demand, struct err *err)
{
	const struct json *body;
	const char *mode;

	if (!json_parse(req->arena, req->body, &body, err))
		return false;
	demand->home_user_id = json_string(json_member(body, "homeUserId"));
	demand->home_instance = json_string(json_member(body, "homeInstance"));
	mode = json_string(json_member(body, "mode"));
	if (!demand->home_user_id || !*demand->home_user_id ||
	    json_units(demand->home_user_id) > HOME_USER_ID_MAX ||
	    !demand->home_instance || !*demand->home_instance || !mode ||
	    (strcmp(mode, "soft") != 0 && strcmp(mode, "full") != 0))
		return err_set(err, ERR_INVALID,
		    "Invalid request: homeUserId, homeInstance, and mode "
		    "(soft|full) required");
	demand->mode = strcmp(mode, "full") == 0 ? DEPART_FULL : DEPART_SOFT;
	return true;
}

/* Only a home speaks for its people, whatever the spelling of its name. */
static bool is_home(
    struct request *req, const struct peer *peer, const char *instance)
{
	struct origin origin;
	int port;
	const char *host = instance_host(req->arena, instance, &port);

	return host && origin_parse(req->arena, peer->origin, &origin) &&
	    strcmp(host, origin.host) == 0 &&
	    (port == 0 || port == origin.port);
}

static bool refuse_stranger(struct err *err)
{
	return err_set(err, ERR_FORBIDDEN,
	    "Attribution mismatch: you can only delete users from your own "
	    "instance");
}

/* Gone, or never here; unless the id is that of another home's person, which
 * is answered as recorded. */
static bool nobody(
    struct request *req, const char *home_user_id, struct err *err)
{
	int64_t other;

	return user_by_any_id(req->tx, home_user_id, &other, err) &&
	    (other ? refuse_stranger(err) : reply_success(req));
}

bool identity_delete(struct request *req, struct err *err)
{
	struct sign_headers headers;
	struct demand demand = { 0 };
	struct peer peer;
	struct user person;
	bool found;

	if (!signed_headers_check(req, &headers, err) ||
	    !peer_authenticate(
		req->tx, req->node, &headers, req->body, &peer, err) ||
	    !demand_read(req, &demand, err))
		return false;
	if (!is_home(req, &peer, demand.home_instance))
		return refuse_stranger(err);
	if (!person_of_home(
		req->tx, peer.host, demand.home_user_id, &person, &found, err))
		return false;
	if (!found)
		return nobody(req, demand.home_user_id, err);
	log_info("identity.deleted", F("peer", v_text(peer.origin)),
	    F("user", v_id(person.id)));
	return person_depart(req->tx, req->node, &person, demand.mode, err) &&
	    reply_success(req);
}

/* ---- POST /api/users/@me/federation-identity/delete ---- */

struct wish {
	const char **said; /* as the client calls them */
	const char **origins;
	size_t count;
	const char *mode;
};

static bool origins_read(
    struct request *req, struct json_in *in, struct wish *wish)
{
	const struct json *list = json_list(in, "origins", ORIGINS_MAX);
	size_t count = json_count(list);

	wish->said = arena_array(req->arena, count, sizeof(*wish->said));
	wish->origins = arena_array(req->arena, count, sizeof(*wish->origins));
	for (size_t i = 0; i < count; i++) {
		const char *said = json_string(json_element(list, i));
		struct origin origin;
		bool known = false;

		if (!said || strlen(said) > ORIGIN_MAX ||
		    !origin_parse(req->arena, said, &origin)) {
			json_fail(in, "origins", "must be a list of origins");
			return false;
		}
		for (size_t j = 0; j < wish->count && !known; j++)
			known = strcmp(wish->said[j], said) == 0;
		if (known)
			continue;
		wish->said[wish->count] = said;
		wish->origins[wish->count++] = origin.text;
	}
	if (count == 0)
		json_fail(in, "origins", "must name one at least");
	return !in->failed;
}

static bool wish_read(struct request *req, struct wish *wish, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);

	*wish = (struct wish){ .mode = json_text(&in, "mode", MODE_MAX) };
	if (!origins_read(req, &in, wish) || !json_done(&in))
		return json_done(&in);
	return strcmp(wish->mode, "leave") == 0 ||
	    strcmp(wish->mode, "soft") == 0 ||
	    strcmp(wish->mode, "full") == 0 ||
	    err_set(err, ERR_INVALID, "mode must be leave, soft or full");
}

/* ---- what came of it ---- */

struct result {
	const char *error; /* NULL: done */
	const struct json *owned_spaces;
};

static void put_spaces(struct json_out *out, const struct json *spaces)
{
	json_open_list(out, "ownedSpaces");
	for (size_t i = 0; i < json_count(spaces); i++) {
		const struct json *space = json_element(spaces, i);

		json_open(out, NULL);
		json_put_text(out, "id", json_string(json_member(space, "id")));
		json_put_text(
		    out, "name", json_string(json_member(space, "name")));
		json_close(out);
	}
	json_close_list(out);
}

static void put_result(
    struct json_out *out, const char *said, const struct result *result)
{
	json_open(out, said);
	json_put_bool(out, "success", !result->error);
	if (result->error)
		json_put_text(out, "error", result->error);
	if (result->owned_spaces)
		put_spaces(out, result->owned_spaces);
	json_close(out);
}

/* What was left elsewhere is no longer declared here. */
static bool finish(struct request *req, const struct wish *wish,
    const struct result *results, struct err *err)
{
	const char **done =
	    arena_array(req->arena, 2 * wish->count, sizeof(*done));
	struct json_out out = { .buf = &req->reply };
	size_t n = 0;

	for (size_t i = 0; i < wish->count; i++) {
		if (results[i].error)
			continue;
		done[n++] = wish->origins[i];
		done[n++] = wish->said[i];
	}
	if (!registry_leave(req->tx, req->user.id, done, n, err))
		return false;
	reply_json(req, 200, "");
	json_open(&out, NULL);
	json_open(&out, "results");
	for (size_t i = 0; i < wish->count; i++)
		put_result(&out, wish->said[i], &results[i]);
	json_close(&out);
	json_close(&out);
	return true;
}

static struct result refused(struct arena *arena, const struct ask *ask)
{
	const struct json *body = NULL;
	struct err err;
	const char *text = NULL;
	struct result result = { .error = NULL };

	if (ask->answer &&
	    json_parse(arena,
		(struct bytes){ ask->answer, strlen(ask->answer) }, &body,
		&err))
		text = json_string(json_member(body, "error"));
	result.error = text && *text
	    ? text
	    : arena_printf(arena, "HTTP %" PRId64, ask->status);
	if (ask->status == 409 &&
	    json_type(json_member(body, "ownedSpaces")) == JSON_ARRAY)
		result.owned_spaces = json_member(body, "ownedSpaces");
	return result;
}

static struct result result_of(struct arena *arena, const struct ask *ask)
{
	if (ask_answered(ask, 200))
		return (struct result){ .error = NULL };
	if (ask->outcome && strcmp(ask->outcome, "answered") == 0)
		return refused(arena, ask);
	if (ask->error && strcmp(ask->error, "timeout") == 0)
		return (struct result){ .error = "timeout" };
	return (struct result){ .error = "unreachable" };
}

/* ---- asking ---- */

/* As recorded: the id and the bare host. */
static struct bytes demand_body(
    const struct request *req, const struct wish *wish)
{
	struct buf buf;
	struct json_out out = { .buf = &buf };

	buf_init(&buf, req->arena, BODY_MAX_BYTES);
	json_open(&out, NULL);
	json_put_id(&out, "homeUserId", req->user.id);
	json_put_text(&out, "homeInstance", req->node->origin.host);
	json_put_text(&out, "mode", wish->mode);
	json_close(&out);
	return buf_bytes(&buf);
}

/* Those that are peers; asks[i].id is 0 for the others. */
static bool asks_add(struct request *req, const struct wish *wish,
    struct ask *asks, struct err *err)
{
	for (size_t i = 0; i < wish->count; i++) {
		struct peer peer;
		bool found;

		asks[i] = (struct ask){ .kind = "identity" };
		if (!peer_by_origin(
			req->tx, wish->origins[i], &peer, &found, err))
			return false;
		if (!found || !peer_is_live(&peer))
			continue;
		asks[i].peer_id = peer.id;
		asks[i].origin = peer.origin;
		asks[i].body = demand_body(req, wish);
		asks[i].deadline = clock_wall_ms() + ASK_MS;
		if (!ask_add(req->tx, &asks[i], err))
			return false;
	}
	return true;
}

/* What the first part leaves for the second. */
struct leaving {
	struct wish wish;
	struct ask *asks; /* without an id: not asked */
	struct result *results;
};

static bool leave_after(struct request *req, struct err *err)
{
	const struct leaving *leaving = req->kept;

	for (size_t i = 0; i < leaving->wish.count; i++) {
		struct ask ask;

		if (!leaving->asks[i].id)
			continue;
		if (!ask_close(req->tx, leaving->asks[i].id, &ask, err))
			return false;
		leaving->results[i] = result_of(req->arena, &ask);
	}
	return finish(req, &leaving->wish, leaving->results, err);
}

/* Why this one is not asked; NULL: it is. */
static const char *unasked(
    const struct request *req, const struct wish *wish, const struct ask *ask)
{
	if (strcmp(wish->mode, "leave") == 0 || ask->id)
		return NULL;
	return req->user.home_instance ? "not_home_instance" : "no_active_peer";
}

static bool park(
    struct request *req, const struct leaving *leaving, struct err *err)
{
	size_t count = leaving->wish.count;
	struct ask *asked = arena_array(req->arena, count, sizeof(*asked));
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		leaving->results[i].error =
		    unasked(req, &leaving->wish, &leaving->asks[i]);
		if (leaving->asks[i].id)
			asked[n++] = leaving->asks[i];
	}
	if (n == 0)
		return finish(req, &leaving->wish, leaving->results, err);
	req->kept = leaving;
	return request_park_all(req, asked, n, leave_after);
}

bool identity_leave(struct request *req, struct err *err)
{
	struct leaving *leaving = ARENA_NEW(req->arena, struct leaving);
	struct wish *wish = &leaving->wish;

	if (!wish_read(req, wish, err))
		return false;
	leaving->asks =
	    arena_array(req->arena, wish->count, sizeof(struct ask));
	leaving->results =
	    arena_array(req->arena, wish->count, sizeof(struct result));
	/* Only its home may end an identity. */
	if (strcmp(wish->mode, "leave") != 0 && !req->user.home_instance &&
	    !asks_add(req, wish, leaving->asks, err))
		return false;
	return park(req, leaving, err);
}

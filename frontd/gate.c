#include <strings.h>

#include "common/net/addr.h"
#include "frontd/dispatch.h"
#include "frontd/reply.h"

enum { WINDOW_MS = 60 * 1000, HEADERS_MAX = 12, ORIGIN_MAX = 512 };
/* An accept is some hundred bytes; larger ones are counted unread. */
enum { PEEK_MAX = 8192 };

static const char stranger[] = "stranger";

/* What the head decided; lives in the exchange's arena. */
struct gate {
	struct match match; /* first: what call_match gives */
	struct limit_state state;
	bool counted;
};

static struct gate *gate_of(struct http_exchange *ex)
{
	struct gate *gate = http_user(ex);

	if (!gate) {
		gate = ARENA_NEW(http_arena(ex), struct gate);
		http_set_user(ex, gate);
	}
	return gate;
}

/* ---- headers ---- */

struct header_list {
	struct arena *arena;
	struct http_header *headers;
	size_t count;
};

static void header_add(
    struct header_list *list, const char *name, const char *value)
{
	assert(list->count < HEADERS_MAX);
	list->headers[list->count++] = (struct http_header){ name, value };
}

static void header_int(struct header_list *list, const char *name, int64_t n)
{
	header_add(list, name, arena_printf(list->arena, "%" PRId64, n));
}

/* Has the handler said itself who may read it? */
static bool is_open(const struct header_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->headers[i].name,
			"access-control-allow-origin") == 0)
			return true;
	return false;
}

static void add_cors(struct header_list *list, const struct http_head *head)
{
	const char *origin = http_head_get(head, "origin");

	if (is_open(list))
		return;
	header_add(list, "vary", "Origin");
	header_add(list, "access-control-allow-credentials", "true");
	if (origin && strlen(origin) <= ORIGIN_MAX)
		header_add(list, "access-control-allow-origin", origin);
}

static void add_limits(struct header_list *list, const struct gate *gate)
{
	if (!gate->counted)
		return;
	header_int(list, "x-ratelimit-limit", gate->state.max);
	header_int(list, "x-ratelimit-remaining", gate->state.remaining);
	header_int(list, "x-ratelimit-reset", gate->state.reset_s);
	if (!gate->state.allowed)
		header_int(list, "retry-after", gate->state.reset_s);
}

static struct header_list headers_begin(
    struct http_exchange *ex, const struct http_reply *reply)
{
	struct arena *arena = http_arena(ex);
	struct header_list list = { .arena = arena };

	list.headers =
	    arena_array(arena, HEADERS_MAX, sizeof(struct http_header));
	for (size_t i = 0; i < reply->header_count; i++)
		header_add(
		    &list, reply->headers[i].name, reply->headers[i].value);
	return list;
}

void gate_headers(struct http_exchange *ex, struct http_reply *reply)
{
	struct header_list list = headers_begin(ex, reply);

	add_cors(&list, http_head(ex));
	add_limits(&list, gate_of(ex));
	reply->headers = list.headers;
	reply->header_count = list.count;
}

/* ---- refusals ---- */

static int64_t refuse(struct dispatch *dispatch, struct http_exchange *ex,
    struct http_reply *reply)
{
	gate_headers(ex, reply);
	observe_head_refused(dispatch, reply->status, http_head(ex));
	return -1;
}

static int64_t refuse_preflight(
    struct http_exchange *ex, struct http_reply *reply)
{
	struct header_list list;

	gate_headers(ex, reply);
	list = headers_begin(ex, reply);
	header_add(&list, "access-control-allow-methods",
	    "GET, POST, PUT, PATCH, DELETE, OPTIONS");
	header_add(&list, "access-control-allow-headers",
	    "Content-Type, Authorization");
	header_add(&list, "access-control-max-age", "600");
	reply->headers = list.headers;
	reply->header_count = list.count;
	reply->status = 204;
	return -1;
}

static void say_no_route(struct arena *arena, const struct http_head *head,
    int status, struct http_reply *reply)
{
	reply_layer(arena, reply, status, NULL,
	    arena_printf(
		arena, "Route %s:%s not found", head->method, head->target));
}

static void say_too_many(struct arena *arena, const struct limit_state *state,
    struct http_reply *reply)
{
	reply->status = 429;
	reply->body.data = arena_printf(arena,
	    "{\"statusCode\":429,\"error\":\"Too Many Requests\","
	    "\"message\":\"Rate limit exceeded\",\"retryAfter\":%" PRId64 "}",
	    state->reset_s);
	reply->body.len = strlen(reply->body.data);
}

/* ---- rates ---- */

static bool count(struct dispatch *dispatch, struct http_exchange *ex,
    const char *scope, int64_t max, int64_t window_ms)
{
	struct gate *gate = gate_of(ex);

	if (!dispatch->conf->rate_limits)
		return true;
	gate->state = limit_count(dispatch->limit, scope,
	    addr_limit_key(http_arena(ex), http_client(ex)), max, window_ms);
	gate->counted = gate->state.max > 0;
	if (!gate->state.allowed)
		observe_limited(scope);
	return gate->state.allowed;
}

/*
 * Peers have counters of their own, after their signature is verified. Until
 * then everybody is a stranger: of an address only so many may be under way or
 * have failed, and who is verified is taken off again (gate_served).
 */
static bool stranger_fits(struct dispatch *dispatch, struct http_exchange *ex)
{
	bool fits = count(
	    dispatch, ex, stranger, dispatch->conf->rate_general, WINDOW_MS);

	gate_of(ex)->counted = !fits;
	return fits;
}

static bool is_stranger_route(const struct route *route)
{
	return route->who == PEER && !route->rate_max;
}

void gate_served(struct dispatch *dispatch, struct http_exchange *ex,
    const struct route *route, int status)
{
	if (is_stranger_route(route) && status != 401 && status != 403)
		limit_give_back(dispatch->limit, stranger,
		    addr_limit_key(http_arena(ex), http_client(ex)));
}

static bool rate_fits(struct dispatch *dispatch, struct http_exchange *ex,
    const struct route *route)
{
	if (!route)
		return count(dispatch, ex, "general",
		    dispatch->conf->rate_general, WINDOW_MS);
	if (is_stranger_route(route))
		return stranger_fits(dispatch, ex);
	if (route->who == PEER)
		return true;
	if (route->rate_max)
		return count(dispatch, ex,
		    arena_printf(
			http_arena(ex), "%s %s", route->method, route->pattern),
		    route->rate_max, route->rate_window_ms);
	return count(
	    dispatch, ex, "general", dispatch->conf->rate_general, WINDOW_MS);
}

/* ---- media type ---- */

static bool takes_body(const char *method)
{
	return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

static bool is_media(const char *type, const char *media)
{
	size_t len = strcspn(type, "; \t");

	return len == strlen(media) && strncasecmp(type, media, len) == 0;
}

/* Text is a string, as the reference reads it, whatever it says. */
struct bytes gate_text(const struct http_exchange *ex)
{
	const char *type = http_head_get(http_head(ex), "content-type");

	return type && is_media(type, "text/plain")
	    ? (struct bytes){ "\"\"", 2 }
	    : http_body(ex);
}

/* Text and JSON, or activities. */
static bool is_taken(const struct route *route, const char *type)
{
	if (route->who == INBOX)
		return is_media(type, "application/activity+json") ||
		    is_media(type, "application/ld+json");
	return is_media(type, "application/json") ||
	    is_media(type, "text/plain");
}

static bool media_fits(struct http_exchange *ex, const struct route *route,
    struct http_reply *reply)
{
	const struct http_head *head = http_head(ex);
	const char *type = http_head_get(head, "content-type");
	struct arena *arena = http_arena(ex);

	if (!takes_body(head->method) || (!type && !head->has_body) ||
	    (!type && head->content_length == 0))
		return true;
	if (!type || !is_taken(route, type)) {
		reply_layer(arena, reply, 415, "FST_ERR_CTP_INVALID_MEDIA_TYPE",
		    arena_printf(arena, "Unsupported Media Type: %s",
			type ? type : "undefined"));
		return false;
	}
	return true;
}

static void say_empty(struct arena *arena, struct http_reply *reply)
{
	reply_layer(arena, reply, 400, "FST_ERR_CTP_EMPTY_JSON_BODY",
	    "Body cannot be empty when content-type is set to "
	    "'application/json'");
}

static bool is_empty_json(struct http_exchange *ex, size_t len)
{
	const struct http_head *head = http_head(ex);

	return len == 0 && takes_body(head->method) &&
	    http_head_count(head, "content-type") > 0;
}

static void say_too_large(struct arena *arena, struct http_reply *reply)
{
	reply_layer(arena, reply, 413, "FST_ERR_CTP_BODY_TOO_LARGE",
	    "Request body is too large");
}

/* ---- the head ---- */

static bool size_fits(struct http_exchange *ex, const struct route *route,
    struct http_reply *reply)
{
	if (http_head(ex)->content_length <= route->body_max)
		return true;
	say_too_large(http_arena(ex), reply);
	return false;
}

/* Which of the two is looked at first is part of each contract. */
static bool size_and_media_fit(struct http_exchange *ex,
    const struct route *route, struct http_reply *reply)
{
	if (route->who == INBOX)
		return size_fits(ex, route, reply) &&
		    media_fits(ex, route, reply);
	return media_fits(ex, route, reply) && size_fits(ex, route, reply);
}

static bool head_fits(struct dispatch *dispatch, struct http_exchange *ex,
    struct http_reply *reply)
{
	const struct http_head *head = http_head(ex);
	struct arena *arena = http_arena(ex);
	struct gate *gate = gate_of(ex);
	enum route_found found =
	    route_find(arena, head->method, head->path, &gate->match);

	if (!rate_fits(dispatch, ex, gate->match.route)) {
		say_too_many(arena, &gate->state, reply);
		return false;
	}
	if (found != ROUTE_FOUND) {
		say_no_route(
		    arena, head, found == ROUTE_UNKNOWN ? 404 : 405, reply);
		return false;
	}
	return size_and_media_fit(ex, gate->match.route, reply);
}

int64_t gate_head(struct http_exchange *ex, struct http_reply *reply, void *arg)
{
	struct dispatch *dispatch = arg;
	const struct http_head *head = http_head(ex);

	if (strcmp(head->method, "OPTIONS") == 0 &&
	    http_head_get(head, "access-control-request-method"))
		return refuse_preflight(ex, reply);
	if (!head_fits(dispatch, ex, reply))
		return refuse(dispatch, ex, reply);
	return gate_of(ex)->match.route->body_max;
}

/* ---- the body ---- */

/*
 * The handshake's own counter: everything counts but what isn't JSON, as
 * recorded. Its answer has the application's shape and no limit headers.
 */
static bool handshake_fits(struct dispatch *dispatch, struct http_exchange *ex)
{
	const struct route *route = gate_of(ex)->match.route;
	struct bytes body = http_body(ex);
	const struct json *value;
	struct err err;

	if (body.len > 0 && body.len <= PEEK_MAX &&
	    !json_parse(http_arena(ex), body, &value, &err))
		return true;
	return count(dispatch, ex, route->pattern, route->rate_max,
	    route->rate_window_ms);
}

bool gate_body(struct dispatch *dispatch, struct http_exchange *ex,
    struct http_reply *reply)
{
	const struct route *route = gate_of(ex)->match.route;

	if (is_empty_json(ex, http_body(ex).len)) {
		say_empty(http_arena(ex), reply);
		return false;
	}
	if (route->who == PEER && route->rate_max &&
	    !handshake_fits(dispatch, ex)) {
		reply_plain(http_arena(ex), reply, 429,
		    "Too many peering requests \xe2\x80\x94 try again later");
		return false;
	}
	return true;
}

#include "tests/lib/test_trust.h"

#include <pthread.h>
#include <stdarg.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/federation/node.h"
#include "common/federation/peer.h"
#include "tests/lib/test_db.h"

#define INITIATE "/api/federation/peer/initiate"
#define ACCEPT "/api/federation/peer/accept"

struct world_call {
	struct world *world;
	const char *path;
	const char *token;
	const char *body;
	pthread_t thread;
	struct arena *arena;
	struct test_reply reply;
};

struct world *world_new(
    const char *host, const char *policy, const char *const *settings)
{
	struct arena *arena = arena_new();
	struct world *world = ARENA_NEW(arena, struct world);

	world->arena = arena;
	world->node = test_node_new(host);
	if (policy)
		world_sql(world,
		    "UPDATE instance_settings SET peer_accept_policy = '%s'",
		    policy);
	world->frontd = test_frontd(world->node, settings);
	world->outboxd = test_outboxd(world->node, NULL);
	world->token =
	    test_person(world->node, world->node->port, "admin").token;
	return world;
}

void world_free(struct world **world)
{
	struct arena *arena = *world ? (*world)->arena : NULL;

	if (!*world)
		return;
	test_node_free(&(*world)->node);
	*world = NULL;
	arena_free(&arena);
}

/* ---- the handshake ---- */

static void *call_run(void *arg)
{
	struct world_call *call = arg;

	call->reply = test_post(call->arena, call->world->node->port,
	    call->path, call->token, call->body);
	return NULL;
}

static struct world_call *call_begin(
    struct world *world, const char *path, const char *token, const char *body)
{
	struct world_call *call = ARENA_NEW(world->arena, struct world_call);

	call->world = world;
	call->path = path;
	call->token = token;
	call->body = body;
	call->arena = arena_new();
	cr_assert(pthread_create(&call->thread, NULL, call_run, call) == 0);
	return call;
}

struct test_reply world_ended(struct world_call **call)
{
	struct test_reply reply;

	pthread_join((*call)->thread, NULL);
	reply = (*call)->reply;
	reply.body =
	    arena_text((*call)->world->arena, reply.body ? reply.body : "");
	reply.head = NULL;
	arena_free(&(*call)->arena);
	*call = NULL;
	return reply;
}

static const char *initiate_body(struct world *world, const char *origin)
{
	return arena_printf(world->arena, "{\"remoteOrigin\":\"%s\"}", origin);
}

struct test_reply world_initiate(struct world *world, const char *origin)
{
	return test_post(world->arena, world->node->port, INITIATE,
	    world->token, initiate_body(world, origin));
}

struct world_call *world_initiate_begin(struct world *world, const char *origin)
{
	return call_begin(
	    world, INITIATE, world->token, initiate_body(world, origin));
}

static const char *accept_body(
    struct world *world, const char *origin, const char *secret)
{
	return arena_printf(world->arena,
	    "{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"%s\"}", origin, secret);
}

struct test_reply world_accept(
    struct world *world, const char *origin, const char *secret)
{
	return test_post(world->arena, world->node->port, ACCEPT, NULL,
	    accept_body(world, origin, secret));
}

struct world_call *world_accept_begin(
    struct world *world, const char *origin, const char *secret)
{
	return call_begin(
	    world, ACCEPT, NULL, accept_body(world, origin, secret));
}

/* ---- rotation ---- */

static const char *rotate_path(struct world *world, const char *origin)
{
	return arena_printf(world->arena, "/api/federation/peers/%s/rotate",
	    test_db_text(world->arena, world->node->database,
		arena_printf(world->arena,
		    "SELECT id::text AS t FROM federation_peers"
		    " WHERE origin = '%s'",
		    origin)));
}

struct test_reply world_rotate(struct world *world, const char *origin)
{
	return test_post(world->arena, world->node->port,
	    rotate_path(world, origin), world->token, NULL);
}

struct world_call *world_rotate_begin(struct world *world, const char *origin)
{
	return call_begin(
	    world, rotate_path(world, origin), world->token, NULL);
}

struct test_reply world_rotate_by(struct world *world, const char *origin,
    const char *secret, const char *fresh)
{
	return world_send(world,
	    &(const struct signed_request){
		.path = "/api/federation/peer/rotate",
		.origin = origin,
		.secret = secret,
		.body =
		    arena_printf(world->arena, "{\"newSecret\":\"%s\"}", fresh),
	    });
}

/* ---- what the database says ---- */

void world_sql(struct world *world, const char *format, ...)
{
	va_list args;
	char text[2048];

	va_start(args, format);
	cr_assert(
	    vsnprintf(text, sizeof(text), format, args) < (int)sizeof(text));
	va_end(args);
	test_db_script(world->node->database, text);
}

const char *world_status(struct world *world, const char *origin)
{
	return test_db_text(world->arena, world->node->database,
	    arena_printf(world->arena,
		"SELECT coalesce((SELECT status FROM federation_peers"
		" WHERE origin = '%s'), '') AS t",
		origin));
}

static const char *secret_of(struct world *world, const char *origin,
    const char *(*open)(
	struct arena *, const struct node *, const struct peer *))
{
	struct conn *conn = test_db_conn(world->node->database);
	struct tx *tx = tx_new(conn, world->arena);
	struct node node = { 0 };
	struct peer peer;
	struct err err = { 0 };
	const char *secret = NULL;
	bool found;

	cr_assert(node_load(world->arena, world->node->origin,
		      arena_printf(world->arena, "%s/key", world->node->dir),
		      &node, &err),
	    "%s", err.text);
	cr_assert(
	    peer_by_origin(tx, origin, &peer, &found, &err), "%s", err.text);
	if (found)
		secret = open(world->arena, &node, &peer);
	node_key_free(&node.key);
	tx_end(&tx);
	conn_free(&conn);
	return secret;
}

const char *world_secret(struct world *world, const char *origin)
{
	return secret_of(world, origin, peer_secret);
}

const char *world_other_secret(struct world *world, const char *origin)
{
	return secret_of(world, origin, peer_other_secret);
}

/* ---- signed requests ---- */

struct test_reply world_send(
    struct world *world, const struct signed_request *request)
{
	struct arena *arena = world->arena;
	const char *timestamp = request->timestamp
	    ? request->timestamp
	    : arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce =
	    request->nonce ? request->nonce : nonce_fresh(arena);
	char made[SIGN_TEXT_MAX];
	struct test_request http = {
		.method = "POST",
		.path = request->path,
		.body = request->body,
	};

	sign_make(request->secret, timestamp, *nonce ? nonce : NULL,
	    (struct bytes){ request->body, strlen(request->body) }, made);
	http.headers = arena_printf(arena,
	    "X-Federation-Signature: %s\r\nX-Federation-Origin: %s\r\n"
	    "X-Federation-Timestamp: %s\r\n%s%s%s",
	    request->signature ? request->signature : made, request->origin,
	    timestamp, *nonce ? "X-Federation-Nonce: " : "", nonce,
	    *nonce ? "\r\n" : "");
	return test_http(
	    arena, request->port ? request->port : world->node->port, &http);
}

struct test_reply world_relay(
    struct world *world, const char *origin, const char *secret)
{
	return world_send(world,
	    &(const struct signed_request){
		.path = "/api/federation/relay",
		.origin = origin,
		.secret = secret,
		.body = arena_printf(world->arena,
		    "{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[]}",
		    origin),
	    });
}

struct test_reply world_counter(struct world *world, const char *origin,
    const char *offered, const char *signer, bool stands)
{
	return world_send(world,
	    &(const struct signed_request){
		.path = ACCEPT,
		.origin = origin,
		.secret = signer,
		.body = arena_printf(world->arena,
		    "{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"%s\"%s}", origin,
		    offered, stands ? ",\"yourSecretStands\":true" : ""),
	    });
}

const char *member_text(
    struct arena *arena, struct bytes json, const char *name)
{
	const struct json *value;
	struct err err = { 0 };

	if (!json_parse(arena, json, &value, &err))
		return NULL;
	return json_string(json_member(value, name));
}

/*
 * What our node sends for the actions that were recorded: the same bytes, but
 * for ids, times, nonce and signature.
 *
 * Our node is nova, the peer is scripted; alice acts through the client API.
 * Before comparing, every id becomes #1, #2 ... in the order in which it first
 * shows, so that what was equal must still be equal, every time becomes #t, and
 * the names of the recorded hosts become those of this test.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "common/pg/sql.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_peer.h"
#include "tests/wire/replay.h"

enum { WAIT_MS = 15000, NUMBERS_MAX = 256, TIME_DIGITS = 13 };
static const char relay[] = "/api/federation/relay";
static const char bob_id[] = "385898137274384384";

struct talk {
	struct arena *arena;
	struct test_node *node;
	struct test_peer *peer;
	struct test_person alice;
	int port;
	int failures; /* batches the peer refuses with 503 first */
	bool rejects; /* the next batch's events, with unknown_message */
	const char *secret;
	const char *channel;
};

/* ---- comparing ---- */

/* Ids by the order of their first showing; times alike. */
static const char *numbered(struct arena *arena, const char *text)
{
	const char *seen[NUMBERS_MAX];
	size_t count = 0;
	struct buf out;

	buf_init(&out, arena, 1 << 22);
	while (*text) {
		size_t digits = strspn(text, "0123456789");
		size_t place = 0;

		if (digits < TIME_DIGITS) {
			buf_add(&out, text, digits ? digits : 1);
			text += digits ? digits : 1;
			continue;
		}
		if (digits == TIME_DIGITS) {
			buf_text(&out, "#t");
			text += digits;
			continue;
		}
		while (place < count &&
		    (strncmp(seen[place], text, digits) ||
			strspn(seen[place], "0123456789") != digits))
			place++;
		cr_assert_lt(place, NUMBERS_MAX);
		if (place == count)
			seen[count++] = text;
		buf_printf(&out, "#%zu", place + 1);
		text += digits;
	}
	return out.data;
}

static void expect_same_bytes(struct talk *talk, const char *recorded,
    const struct test_peer_request *sent)
{
	struct arena *arena = talk->arena;
	const char *peer = test_peer_origin(talk->peer);
	const char *want = recorded;
	const char *got = sent->body.data;

	want =
	    text_replaced(arena, want, "https://nova.test", talk->node->origin);
	want = text_replaced(arena, want, "https://orbit.test", peer);
	want = text_replaced(arena, want, "orbit.test", "orbit.localhost");
	want = numbered(arena, want);
	got = numbered(arena, got);
	cr_expect_str_eq(got, want);
}

static void expect_signed(
    struct talk *talk, const struct test_peer_request *sent)
{
	const char *timestamp =
	    test_peer_header(talk->arena, sent, "x-federation-timestamp");
	const char *nonce =
	    test_peer_header(talk->arena, sent, "x-federation-nonce");

	cr_expect_str_eq(
	    test_peer_header(talk->arena, sent, "x-federation-origin"),
	    talk->node->origin);
	cr_expect_str_eq(test_peer_header(talk->arena, sent, "content-type"),
	    "application/json");
	cr_expect(sign_verify(talk->secret, timestamp, nonce, sent->body,
	    test_peer_header(talk->arena, sent, "x-federation-signature")));
}

/* ---- the peer and the node ---- */

static void script(void *arg, struct arena *arena,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	struct talk *talk = arg;

	if (strcmp(request->path, relay)) {
		const struct json *body = NULL;
		struct err err = { 0 };

		if (json_parse(arena, request->body, &body, &err))
			talk->secret =
			    json_string(json_member(body, "hmacSecret"));
		return;
	}
	if (talk->failures > 0) {
		talk->failures--;
		answer->status = 503;
		answer->body = "{\"error\":\"fault\",\"statusCode\":503}";
	} else if (talk->rejects) {
		talk->rejects = false;
		answer->body =
		    test_peer_verdict(arena, request->body, "unknown_message");
	}
}

static void sql(struct talk *talk, const char *text)
{
	struct conn_def def = { .conninfo = talk->node->database,
		.application = "wire" };
	struct conn *conn = conn_new(&def);
	struct err err = { 0 };

	cr_assert(conn_script(conn, text, &err), "%s", err.text);
	conn_free(&conn);
}

static struct test_reply call(
    struct talk *talk, const char *method, const char *path, const char *body)
{
	struct test_request request = {
		.method = method,
		.path = path,
		.token = talk->alice.token,
		.body = body,
	};

	return test_http(talk->arena, talk->port, &request);
}

static void talk_begin(struct talk *talk)
{
	struct test_reply reply;

	*talk = (struct talk){ .arena = arena_new() };
	recording_check();
	talk->node = test_node_new("nova.localhost");
	talk->peer = test_peer_new("orbit.localhost", script, talk);
	talk->port = test_frontd(talk->node, NULL)->port;
	test_outboxd(talk->node, NULL);
	talk->alice = test_person(talk->node, talk->port, "alice");
	sql(talk,
	    "UPDATE users SET display_name = 'Alice', avatar_color = 'amber'");
	reply = call(talk, "POST", "/api/federation/peer/initiate",
	    arena_printf(talk->arena, "{\"remoteOrigin\":\"%s\"}",
		test_peer_origin(talk->peer)));
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	reply = call(talk, "POST", "/api/dm",
	    arena_printf(talk->arena,
		"{\"homeUserId\":\"%s\",\"homeInstance\":\"orbit.localhost\"}",
		bob_id));
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	talk->channel = test_text(talk->arena, &reply, "id");
}

static void talk_end(struct talk *talk)
{
	test_node_free(&talk->node);
	test_peer_free(&talk->peer);
	arena_free(&talk->arena);
}

/* Writes a message; its id. */
static const char *write_message(struct talk *talk, const char *body)
{
	struct test_reply reply = call(talk, "POST",
	    arena_printf(talk->arena, "/api/dm/%s/messages", talk->channel),
	    body);

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(talk->arena, &reply, "id");
}

static void edit(struct talk *talk, const char *id, const char *content)
{
	struct test_reply reply = call(talk, "PATCH",
	    arena_printf(talk->arena, "/api/dm/messages/%s", id),
	    arena_printf(talk->arena, "{\"content\":\"%s\"}", content));

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

static void erase(struct talk *talk, const char *id)
{
	struct test_reply reply = call(talk, "DELETE",
	    arena_printf(talk->arena, "/api/dm/messages/%s", id), NULL);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

static struct test_peer_request batch(struct talk *talk, size_t place)
{
	struct test_peer_request sent;

	cr_assert(test_peer_got(talk->peer, relay, place + 1, WAIT_MS),
	    "batch %zu did not come", place);
	sent = test_peer_nth(talk->peer, relay, place);
	expect_signed(talk, &sent);
	return sent;
}

/* The body that nova sent as the nth message batch of a case. */
static const char *recorded_body(
    struct talk *talk, const char *name, size_t place)
{
	struct recording recording = recording_load(talk->arena, name);

	for (size_t i = 0; i < recording.count; i++) {
		const struct exchange *exchange = &recording.exchanges[i];

		if (!strcmp(exchange->from, "nova.test") &&
		    !strcmp(exchange->path, relay) &&
		    !exchange_has_only(
			talk->arena, exchange, "dm_typing_stop") &&
		    place-- == 0)
			return exchange->body.data;
	}
	cr_assert_fail("%s has no such batch", name);
	return NULL;
}

Test(wire_outbound, create_edit_delete_020_021_022, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *id;

	talk_begin(&talk);
	id = write_message(&talk, "{\"content\":\"hello bob, this is alice\"}");
	sent = batch(&talk, 0);
	expect_same_bytes(
	    &talk, recorded_body(&talk, "020-dm-message-create", 0), &sent);
	/* As hydrated by bob's answer in the record. */
	sql(&talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral'"
	    " WHERE home_user_id IS NOT NULL");
	edit(&talk, id, "hello bob, edited");
	sent = batch(&talk, 1);
	expect_same_bytes(
	    &talk, recorded_body(&talk, "021-dm-message-edit", 0), &sent);
	erase(&talk, id);
	sent = batch(&talk, 2);
	cr_expect(strstr(sent.body.data, "\"eventType\":\"delete\""));
	cr_expect(!strstr(sent.body.data, "participants"));
	talk_end(&talk);
}

static const char *last_delete_of_022(struct talk *talk)
{
	struct recording recording =
	    recording_load(talk->arena, "022-dm-message-delete");
	const char *body = NULL;

	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].from, "nova.test") &&
		    exchange_has_only(
			talk->arena, &recording.exchanges[i], "delete"))
			body = recording.exchanges[i].body.data;
	cr_assert(body);
	return body;
}

Test(wire_outbound, delete_has_the_recorded_bytes_022, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *id;

	talk_begin(&talk);
	id = write_message(&talk, "{\"content\":\"to be deleted\"}");
	batch(&talk, 0);
	erase(&talk, id);
	sent = batch(&talk, 1);
	expect_same_bytes(&talk, last_delete_of_022(&talk), &sent);
	talk_end(&talk);
}

Test(wire_outbound, changes_fold_while_the_peer_is_away_024, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *kept;
	const char *gone;
	const char *fresh;

	talk_begin(&talk);
	sql(&talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral'"
	    " WHERE home_user_id IS NOT NULL");
	kept = write_message(
	    &talk, "{\"content\":\"delivered before the outage\"}");
	sent = batch(&talk, 0);
	expect_same_bytes(
	    &talk, recorded_body(&talk, "024-dm-coalesce", 0), &sent);
	gone = write_message(
	    &talk, "{\"content\":\"delivered before the outage (2)\"}");
	batch(&talk, 1);
	/* The peer pauses; what happens meanwhile folds. */
	sql(&talk,
	    "UPDATE federation_peers SET paused_until = now() +"
	    " interval '1 hour'");
	fresh = write_message(&talk, "{\"content\":\"first version\"}");
	edit(&talk, fresh, "second version, still undelivered");
	erase(&talk, write_message(&talk, "{\"content\":\"never seen\"}"));
	edit(&talk, kept, "edit one");
	edit(&talk, kept, "edit two");
	edit(&talk, gone, "three");
	erase(&talk, gone);
	cr_assert_eq(test_peer_count(talk.peer, relay), 2);
	sql(&talk, "UPDATE federation_peers SET paused_until = NULL");
	sent = batch(&talk, 2);
	expect_same_bytes(
	    &talk, recorded_body(&talk, "024-dm-coalesce", 3), &sent);
	talk_end(&talk);
}

Test(wire_outbound, reply_025, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *id;

	talk_begin(&talk);
	sql(&talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral'"
	    " WHERE home_user_id IS NOT NULL");
	id = write_message(&talk, "{\"content\":\"first\"}");
	batch(&talk, 0);
	write_message(&talk,
	    arena_printf(talk.arena,
		"{\"content\":\"reply to my own\",\"replyToId\":\"%s\"}", id));
	sent = batch(&talk, 1);
	cr_expect(strstr(sent.body.data,
	    arena_printf(talk.arena, "\"replyToId\":\"%s\"", id)));
	talk_end(&talk);
}

/* A refusal for now is set aside and comes again with a new nonce. */
Test(wire_outbound, a_refused_create_comes_again_141, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request first;
	struct test_peer_request second;

	talk_begin(&talk);
	talk.rejects = true;
	write_message(&talk, "{\"content\":\"refused for now\"}");
	first = batch(&talk, 0);
	sql(&talk,
	    "UPDATE federation_outbox SET retry_at = now()"
	    " WHERE retry_at IS NOT NULL");
	for (int i = 0; i < 200 && test_peer_count(talk.peer, relay) < 2; i++) {
		sql(&talk,
		    "UPDATE federation_outbox SET retry_at = now()"
		    " WHERE retry_at IS NOT NULL");
		test_peer_got(talk.peer, relay, 2, 50);
	}
	second = batch(&talk, 1);
	cr_expect_str_eq(first.body.data, second.body.data);
	cr_expect_str_neq(
	    test_peer_header(talk.arena, &first, "x-federation-nonce"),
	    test_peer_header(talk.arena, &second, "x-federation-nonce"));
	talk_end(&talk);
}

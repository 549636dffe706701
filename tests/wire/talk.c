#include "tests/wire/talk.h"

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "common/pg/sql.h"

enum {
	WAIT_MS = 15000,
	NUMBERS_MAX = 256,
	TIME_DIGITS = 13,
	GROUP_ID_CHARS = 36
};
static const char relay[] = TALK_RELAY;
static const char bob_id[] = TALK_BOB;

/* ---- comparing ---- */

/* Is there a group's id, 36 characters with dashes? */
static bool is_group_id(const char *text)
{
	for (int i = 0; i < GROUP_ID_CHARS; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-'
			 : !text[i] || !strchr("0123456789abcdef", text[i]))
			return false;
	}
	return text[GROUP_ID_CHARS] == '"';
}

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

		if (is_group_id(text)) {
			buf_text(&out, "#g");
			text += GROUP_ID_CHARS;
			continue;
		}
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

void talk_expect(struct talk *talk, const char *recorded,
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

void talk_sql(struct talk *talk, const char *text)
{
	struct conn_def def = { .conninfo = talk->node->database,
		.application = "wire" };
	struct conn *conn = conn_new(&def);
	struct err err = { 0 };

	cr_assert(conn_script(conn, text, &err), "%s", err.text);
	conn_free(&conn);
}

struct test_reply talk_call(
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

void talk_begin(struct talk *talk)
{
	struct test_reply reply;

	*talk = (struct talk){ .arena = arena_new() };
	recording_check();
	talk->node = test_node_new("nova.localhost");
	talk->peer = test_peer_new("orbit.localhost", script, talk);
	talk->port = test_frontd(talk->node, NULL)->port;
	test_outboxd(talk->node, NULL);
	talk->alice = test_person(talk->node, talk->port, "alice");
	talk_sql(talk,
	    "UPDATE users SET display_name = 'Alice', avatar_color = 'amber'");
	reply = talk_call(talk, "POST", "/api/federation/peer/initiate",
	    arena_printf(talk->arena, "{\"remoteOrigin\":\"%s\"}",
		test_peer_origin(talk->peer)));
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	reply = talk_call(talk, "POST", "/api/dm",
	    arena_printf(talk->arena,
		"{\"homeUserId\":\"%s\",\"homeInstance\":\"orbit.localhost\"}",
		bob_id));
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	talk->channel = test_text(talk->arena, &reply, "id");
}

void talk_end(struct talk *talk)
{
	test_node_free(&talk->node);
	test_peer_free(&talk->peer);
	arena_free(&talk->arena);
}

/* Writes a message; its id. */
const char *talk_write(struct talk *talk, const char *body)
{
	struct test_reply reply = talk_call(talk, "POST",
	    arena_printf(talk->arena, "/api/dm/%s/messages", talk->channel),
	    body);

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(talk->arena, &reply, "id");
}

void talk_edit(struct talk *talk, const char *id, const char *content)
{
	struct test_reply reply = talk_call(talk, "PATCH",
	    arena_printf(talk->arena, "/api/dm/messages/%s", id),
	    arena_printf(talk->arena, "{\"content\":\"%s\"}", content));

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

void talk_erase(struct talk *talk, const char *id)
{
	struct test_reply reply = talk_call(talk, "DELETE",
	    arena_printf(talk->arena, "/api/dm/messages/%s", id), NULL);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

struct test_peer_request talk_batch(struct talk *talk, size_t place)
{
	struct test_peer_request sent;

	cr_assert(test_peer_got(talk->peer, relay, place + 1, WAIT_MS),
	    "batch %zu did not come", place);
	sent = test_peer_nth(talk->peer, relay, place);
	expect_signed(talk, &sent);
	return sent;
}

/* The body that nova sent as the nth message batch of a case. */
const char *talk_recorded(struct talk *talk, const char *name, size_t place)
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

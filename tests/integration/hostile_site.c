#include "tests/integration/hostile_site.h"

#include <stdlib.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"

struct hostile hostile_begin(const char *const *settings)
{
	struct hostile site = { .world = world_new(
				    "nova.localhost", "open", settings) };
	struct test_reply me;

	site.arena = site.world->arena;
	site.port = site.world->node->port;
	me = test_get(
	    site.arena, site.port, "/api/users/@me", site.world->token);
	site.alice = test_text(site.arena, &me, "id");
	cr_assert_not_null(site.alice, "%s", me.body);
	cr_assert_eq(
	    world_accept(site.world, HOSTILE_LUNA, HOSTILE_SECRET).status, 200);
	return site;
}

void hostile_end(struct hostile *site)
{
	world_free(&site->world);
}

/* ---- relay ---- */

const char *hostile_body(struct hostile *site, const char *events)
{
	return arena_printf(site->arena,
	    "{\"version\":1,\"sourceInstance\":\"" HOSTILE_LUNA
	    "\",\"events\":[%s]}",
	    events);
}

struct test_reply hostile_send(struct hostile *site, const char *body)
{
	return world_send(site->world,
	    &(const struct signed_request){ .path = HOSTILE_RELAY,
		.origin = HOSTILE_LUNA,
		.secret = HOSTILE_SECRET,
		.body = body });
}

struct test_reply hostile_relay(struct hostile *site, const char *events)
{
	return hostile_send(site, hostile_body(site, events));
}

struct bytes hostile_request(struct hostile *site, const char *body)
{
	struct arena *arena = site->arena;
	const char *now = arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];
	const char *text;

	sign_make(HOSTILE_SECRET, now, nonce,
	    (struct bytes){ body, strlen(body) }, signature);
	text = arena_printf(arena,
	    "POST " HOSTILE_RELAY " HTTP/1.1\r\nHost: nova\r\n"
	    "Content-Type: application/json\r\nConnection: close\r\n"
	    "X-Federation-Origin: " HOSTILE_LUNA "\r\n"
	    "X-Federation-Timestamp: %s\r\nX-Federation-Nonce: %s\r\n"
	    "X-Federation-Signature: %s\r\nContent-Length: %zu\r\n\r\n%s",
	    now, nonce, signature, strlen(body), body);
	return (struct bytes){ text, strlen(text) };
}

const char *hostile_create(
    struct hostile *site, const char *id, const char *content)
{
	return arena_printf(site->arena,
	    "{\"eventType\":\"create\",\"contextType\":\"dm\","
	    "\"messageId\":\"%s\",\"participants\":[{\"homeUserId\":\"700\","
	    "\"homeInstance\":\"luna.localhost\",\"profile\":{\"username\":"
	    "\"zed\",\"displayName\":null,\"avatar\":null,\"avatarColor\":"
	    "null}},{\"homeUserId\":\"%s\",\"homeInstance\":"
	    "\"nova.localhost\"}],\"message\":{\"homeUserId\":\"700\","
	    "\"homeInstance\":\"luna.localhost\",\"content\":\"%s\","
	    "\"createdAt\":%" PRId64 "}}",
	    id, site->alice, content, clock_wall_ms());
}

const char *hostile_joined(
    struct hostile *site, const char *const *events, size_t count)
{
	struct buf text;

	buf_init(&text, site->arena, 1 << 24);
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "%s%s", i ? "," : "", events[i]);
	return text.data;
}

const char *hostile_with(
    struct hostile *site, const char *event, const char *what, const char *by)
{
	const char *at = strstr(event, what);

	cr_assert(at, "%s is not in the event", what);
	return arena_printf(site->arena, "%.*s%s%s", (int)(at - event), event,
	    by, at + strlen(what));
}

const char *hostile_repeated(
    struct hostile *site, const char *what, size_t times)
{
	struct buf text;

	buf_init(&text, site->arena, 1 << 24);
	for (size_t i = 0; i < times; i++)
		buf_text(&text, what);
	return text.data;
}

/* ---- what became of it ---- */

/* Of a peer only what it is trusted for: it may well be seen. */
static const char state_query[] =
    "SELECT concat_ws(' ',"
    " (SELECT md5(string_agg(to_jsonb(u)::text, ',' ORDER BY id))"
    "   FROM users u),"
    " (SELECT md5(string_agg(to_jsonb(c)::text, ',' ORDER BY id))"
    "   FROM dm_channels c),"
    " (SELECT md5(string_agg(m::text, ',' ORDER BY m::text))"
    "   FROM dm_members m),"
    " (SELECT md5(string_agg(to_jsonb(m)::text, ',' ORDER BY id))"
    "   FROM dm_messages m),"
    " (SELECT md5(string_agg(p::text, ',' ORDER BY id)) FROM (SELECT id,"
    "   origin, host, status, hmac_secret, pending_hmac_secret"
    "   FROM federation_peers) p),"
    " (SELECT count(*) FROM conversation_events),"
    " (SELECT count(*) FROM user_events),"
    " (SELECT count(*) FROM attachments),"
    " (SELECT count(*) FROM dm_reactions),"
    " (SELECT count(*) FROM federation_outbox),"
    " (SELECT count(*) FROM federation_file_queue),"
    " (SELECT count(*) FROM message_tombstones),"
    " (SELECT count(*) FROM sessions)) AS t";

const char *hostile_state(struct hostile *site)
{
	return test_db_text(
	    site->arena, site->world->node->database, state_query);
}

int64_t hostile_number(struct hostile *site, const char *query)
{
	return test_db_number(site->world->node->database,
	    arena_printf(site->arena, "SELECT (%s)::bigint AS n", query));
}

const char *hostile_noise(struct hostile *site, size_t length)
{
	char *text = arena_alloc(site->arena, length + 1);
	uint32_t seed = 1;

	for (size_t i = 0; i < length; i++) {
		seed = seed * 1664525 + 1013904223;
		text[i] = (char)('a' + (seed >> 16) % 26);
	}
	text[length] = '\0';
	return text;
}

int hostile_lines(struct hostile *site, const char *text)
{
	FILE *file = fopen(site->world->frontd->log, "re");
	char *line = NULL;
	size_t room = 0;
	int count = 0;

	while (file && getline(&line, &room, file) >= 0)
		count += strstr(line, text) != NULL;
	free(line);
	if (file)
		fclose(file);
	return count;
}

#include "tests/integration/delivery_site.h"

#include <criterion/criterion.h>

#include "common/federation/peer.h"

struct site site_begin(void)
{
	struct site site = { .node = test_node_new("nova.localhost") };

	site.arena = site.node->arena;
	site.db = site.node->database;
	return site;
}

void site_end(struct site *site)
{
	test_node_free(&site->node);
}

int64_t site_number(struct site *site, const char *query)
{
	return test_db_number(site->db, query);
}

bool site_until(struct site *site, const char *condition, int ms)
{
	return test_db_until(site->db,
	    arena_printf(site->arena, "SELECT %s AS b", condition), ms);
}

bool site_drained(struct site *site, int ms)
{
	return site_until(site,
	    "NOT EXISTS (SELECT FROM federation_outbox) AND NOT EXISTS "
	    "(SELECT FROM federation_peers WHERE lease_worker IS NOT NULL)",
	    ms);
}

static const char *hex_of(struct arena *arena, struct bytes bytes)
{
	struct buf hex;
	const unsigned char *byte = bytes.data;

	buf_init(&hex, arena, 4096);
	for (size_t i = 0; i < bytes.len; i++)
		buf_printf(&hex, "%02x", byte[i]);
	return hex.data;
}

int64_t site_peer(struct site *site, const char *origin)
{
	struct arena *arena = site->arena;
	const char *key = arena_printf(arena, "%s/key", site->node->dir);
	struct node node;
	struct origin parsed;
	struct err err = { 0 };
	struct bytes sealed;
	int64_t id = site_number(site, "SELECT snowflake() AS n");

	cr_assert(node_load(arena, site->node->origin, key, &node, &err), "%s",
	    err.text);
	cr_assert(origin_parse(arena, origin, &parsed));
	sealed = peer_seal(arena, &node, id, SITE_SECRET);
	test_db_script(site->db,
	    arena_printf(arena,
		"INSERT INTO federation_peers (id, origin, host, status, "
		"hmac_secret) VALUES (%" PRId64 ", '%s', '%s', 'active', "
		"'\\x%s')",
		id, origin, arena_printf(arena, "%s-%" PRId64, parsed.host, id),
		hex_of(arena, sealed)));
	node_key_free(&node.key);
	return id;
}

static void put_entry(
    struct buf *script, int64_t peer, const char *entry, int place)
{
	char type[32] = "";
	char thing[64] = "";
	char context[32] = "@c";

	cr_assert_geq(sscanf(entry, "%31s %63s %31s", type, thing, context), 2);
	buf_printf(script,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
	    " event_type, entity_id, payload, expires_at) VALUES (%" PRId64
	    ", 'dm', '%s', '%s', '%s', '\"n\":%d', now() + interval '1 day');",
	    peer, context + 1, type, thing, place);
}

void site_enqueue(struct site *site, int64_t peer, const char *const *entries)
{
	struct buf script;

	buf_init(&script, NULL, 1 << 20);
	for (int i = 0; entries[i]; i++)
		put_entry(&script, peer, entries[i], i);
	test_db_script(site->db, script.data);
	buf_done(&script);
}

void site_enqueue_many(
    struct site *site, int64_t peer, const char *prefix, int count)
{
	test_db_script(site->db,
	    arena_printf(site->arena,
		"INSERT INTO federation_outbox (peer_id, context_type, "
		"context_id, event_type, entity_id, payload, expires_at) "
		"SELECT %" PRId64 ", 'dm', 'c', 'create', '%s' || n, "
		"'\"n\":' || n, now() + interval '1 day' "
		"FROM generate_series(1, %d) n",
		peer, prefix, count));
}

static const struct json *events_of(
    struct arena *arena, const struct test_peer_request *request)
{
	const struct json *root;
	struct err err = { 0 };

	cr_assert(
	    json_parse(arena, request->body, &root, &err), "%s", err.text);
	return json_member(root, "events");
}

const char *site_batch(struct site *site, struct test_peer *peer, size_t place)
{
	struct test_peer_request request =
	    test_peer_nth(peer, RELAY_PATH, place);
	const struct json *events = events_of(site->arena, &request);
	struct buf out;

	buf_init(&out, site->arena, 1 << 20);
	buf_text(&out, "");
	for (size_t i = 0; i < json_count(events); i++) {
		const struct json *event = json_element(events, i);

		buf_printf(&out, "%s%s %s", i ? ", " : "",
		    json_string(json_member(event, "eventType")),
		    json_string(json_member(event, "messageId")));
	}
	return out.data ? out.data : "";
}

const char *site_told(struct site *site, struct test_peer *peer)
{
	size_t count = test_peer_count(peer, RELAY_PATH);
	struct buf out;

	buf_init(&out, site->arena, 1 << 20);
	for (size_t i = 0; i < count; i++)
		buf_printf(
		    &out, "%s%s", i ? " | " : "", site_batch(site, peer, i));
	return out.data ? out.data : "";
}

size_t site_events(struct site *site, struct test_peer *peer)
{
	size_t count = test_peer_count(peer, RELAY_PATH);
	size_t events = 0;

	for (size_t i = 0; i < count; i++) {
		struct test_peer_request request =
		    test_peer_nth(peer, RELAY_PATH, i);

		events += json_count(events_of(site->arena, &request));
	}
	return events;
}

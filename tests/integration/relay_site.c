#include "tests/integration/relay_site.h"

#include "common/base/clock.h"
#include "common/federation/relay.h"
#include "tests/lib/test_db.h"

enum { ANSWER_MAX = 1 << 20 };

static void must(bool good, const struct err *err)
{
	if (good)
		return;
	fprintf(stderr, "relay site: %s\n", err->text);
	abort();
}

struct peer relay_site_peer(struct relay_site *site, const char *host)
{
	const char *origin = arena_printf(site->arena, "https://%s", host);

	test_db_script(site->conninfo,
	    arena_printf(site->arena,
		"INSERT INTO federation_peers (origin, host, status, "
		"hmac_secret) VALUES ('%s', '%s', 'active', 'x')",
		origin, host));
	return (struct peer){
		.id = relay_site_number(site,
		    arena_printf(site->arena,
			"SELECT id AS n FROM federation_peers "
			"WHERE host = '%s'",
			host)),
		.origin = origin,
		.host = host,
	};
}

void relay_site_begin(struct relay_site *site)
{
	site->arena = arena_new();
	site->conninfo = test_db_create();
	site->conn = test_db_conn(site->conninfo);
	if (!origin_parse(site->arena, "https://nova.test", &site->node.origin))
		abort();
	test_db_script(site->conninfo,
	    "UPDATE instance_settings SET max_upload_size_bytes = 7340032");
	site->luna = relay_site_peer(site, "luna.test");
	test_db_script(site->conninfo,
	    "INSERT INTO users (username, display_name, password_hash) "
	    "VALUES ('alice', 'Alice', 'x'), ('bob', 'Bob', 'x')");
	site->alice = relay_site_number(
	    site, "SELECT id AS n FROM users WHERE username = 'alice'");
	site->bob = relay_site_number(
	    site, "SELECT id AS n FROM users WHERE username = 'bob'");
}

void relay_site_end(struct relay_site *site)
{
	if (!site->arena)
		return;
	conn_free(&site->conn);
	test_db_drop(&site->conninfo);
	arena_free(&site->arena);
}

int64_t relay_site_number(struct relay_site *site, const char *query)
{
	return test_db_number(site->conninfo, query);
}

const char *relay_site_text(struct relay_site *site, const char *query)
{
	return test_db_text(site->arena, site->conninfo, query);
}

const char *relay_site_apply(struct relay_site *site, struct conn *conn,
    const struct peer *peer, const char *events, bool singly)
{
	const char *body = arena_printf(site->arena,
	    "{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[%s]}",
	    peer->origin, events);
	AUTO(tx_end) struct tx *tx = tx_new(conn, site->arena);
	struct relay_batch *batch;
	struct err err = { 0 };
	struct buf answer;

	must(relay_parse(site->arena, (struct bytes){ body, strlen(body) },
		 &site->node, peer, &batch, &err),
	    &err);
	if (singly)
		must(relay_apply_singly(tx, batch, &err), &err);
	else
		must(relay_apply(tx, batch, &err) && tx_commit(tx, &err), &err);
	buf_init(&answer, site->arena, ANSWER_MAX);
	relay_answer(batch, &answer);
	return answer.data;
}

const char *relay_site_send(struct relay_site *site, const char *events)
{
	return relay_site_apply(site, site->conn, &site->luna, events, false);
}

const char *relay_site_create(
    struct relay_site *site, const char *id, const char *content)
{
	return arena_printf(site->arena,
	    "{\"eventType\":\"create\",\"contextType\":\"dm\","
	    "\"messageId\":\"%s\",\"encryptionVersion\":0,\"timestamp\":1,"
	    "\"dmChannelId\":\"9\",\"participants\":[" SITE_ZED
	    ",{\"homeUserId\":\"%" PRId64 "\",\"homeInstance\":\"nova.test\","
	    "\"profile\":{\"username\":\"x\"}}],\"message\":{\"userId\":\"1\","
	    "\"homeUserId\":\"700\",\"homeInstance\":\"https://luna.test\","
	    "\"content\":\"%s\",\"replyToId\":null,\"editedAt\":null,"
	    "\"createdAt\":%" PRId64 "}}",
	    id, site->alice, content, clock_wall_ms());
}

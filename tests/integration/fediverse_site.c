#include "tests/integration/fediverse_site.h"

#include <criterion/criterion.h>

#include "common/base/clock.h"

static const struct client_def client = {
	.allow_private_addresses = true,
	.user_agent = "Postrider/test",
	.connections_per_host_max = 4,
};

static void alice_make(struct fediverse_site *site)
{
	AUTO(tx_end) struct tx *tx = tx_new(site->conn, site->arena);
	const struct actor_draft draft = {
		.username = "alice",
		.kind = "Person",
	};
	struct err err = { 0 };

	cr_assert(actor_make(tx, site->key, &draft, &site->actor, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	cr_assert(pkey_public(site->actor.public_key_pem, &site->alice, &err));
}

struct fediverse_site fediverse_site_begin(void)
{
	struct fediverse_site site = { .node =
					   test_node_new("nova.localhost") };
	struct err err = { 0 };

	site.arena = site.node->arena;
	site.db = site.node->database;
	site.conn = test_db_conn(site.db);
	test_db_script(
	    site.db, "UPDATE instance_settings SET fediverse = true");
	cr_assert(
	    node_key_load(arena_printf(site.arena, "%s/key", site.node->dir),
		&site.key, &err),
	    "%s", err.text);
	site.home.key = site.key;
	cr_assert(
	    origin_parse(site.arena, site.node->origin, &site.home.origin));
	alice_make(&site);
	return site;
}

void fediverse_site_end(struct fediverse_site *site)
{
	conn_free(&site->conn);
	pkey_free(&site->alice);
	node_key_free(&site->key);
	test_node_free(&site->node);
}

const char *fediverse_owe_as(struct fediverse_site *site, const char *activity,
    const char *inbox, const char *transport, bool shared)
{
	return test_db_text(site->arena, site->db,
	    arena_printf(site->arena,
		"SELECT id::text AS t FROM fediverse_enqueue('%s', "
		"'{\"id\":\"%s\",\"type\":\"Create\"}', '%s', '%s', %s, %s)",
		activity, activity, inbox, site->actor.id,
		transport ? arena_printf(site->arena, "'%s'", transport)
			  : "NULL",
		shared ? "true" : "false"));
}

const char *fediverse_owe(
    struct fediverse_site *site, const char *activity, const char *inbox)
{
	return fediverse_owe_as(site, activity, inbox, NULL, false);
}

const char *fediverse_row(
    struct fediverse_site *site, const char *id, const char *column)
{
	return test_db_text(site->arena, site->db,
	    arena_printf(site->arena,
		"SELECT coalesce((%s)::text, '') AS t FROM "
		"fediverse_outbound_queue WHERE id = '%s'",
		column, id));
}

bool fediverse_until(struct fediverse_site *site, const char *condition, int ms)
{
	return test_db_until(site->db,
	    arena_printf(site->arena, "SELECT %s AS b", condition), ms);
}

bool fediverse_drain(struct fediverse_site *site,
    const struct outbound_delivery *delivery, struct outbound_item *item)
{
	const struct drain_one drain = {
		.conn = site->conn,
		.arena = site->arena,
		.home = &site->home,
		.client = &client,
		.delivery = delivery,
	};
	struct err err = { 0 };
	bool found = false;

	cr_assert(
	    outbound_drain_one(&drain, &found, item, &err), "%s", err.text);
	return found;
}

/* A head that the test peer read, for our own parser. */
const char *fediverse_unsigned(struct fediverse_site *site,
    const struct test_peer_request *request, enum sig_style *style)
{
	struct arena *arena = site->arena;
	struct http_head head;
	struct sig_claims claims;
	struct err err = { 0 };
	const char *text = request->head;
	struct sig_message message;
	size_t used;
	int status;

	if (http_parse_head(arena, text, strlen(text), &head, &used, &status) !=
	    HTTP_DONE)
		return "no head";
	message = (struct sig_message){
		.method = head.method,
		.scheme = "http",
		.target = head.target,
		.headers = head.headers,
		.header_count = head.header_count,
		.body = request->body,
	};
	if (!sig_read(arena, &message, clock_wall_ms() / 1000, &claims, &err) ||
	    !sig_check(&claims.items[0], site->alice, &err))
		return arena_text(arena, err.text);
	*style = claims.items[0].style;
	return NULL;
}

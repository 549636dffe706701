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

bool fediverse_drain_one(struct fediverse_site *site,
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

/* ---- a receiver ---- */

static bool is_style(const struct test_peer_request *request, const char *style)
{
	struct arena *arena = arena_new();
	bool rfc9421 =
	    test_peer_header(arena, request, "signature-input") != NULL;

	arena_free(&arena);
	return rfc9421 == (strcmp(style, "rfc9421") == 0);
}

static void lead(struct arena *arena, const char *to, int status,
    struct test_peer_answer *answer)
{
	answer->status = status;
	answer->headers =
	    *to ? arena_printf(arena, "Location: %s\r\n", to) : NULL;
}

static const char *after(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(path, prefix, len) == 0 ? path + len : NULL;
}

static void by_path(void *arg UNUSED, struct arena *arena,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const char *path = request->path;
	const char *rest;

	*answer = (struct test_peer_answer){ .status = 202, .body = "" };
	if ((rest = after(path, "/code/"))) {
		answer->status = (int)strtol(rest, NULL, 10);
		answer->body = "it is\r\nnot so";
	} else if ((rest = after(path, "/only/"))) {
		answer->status = is_style(request, rest) ? 202 : 401;
	} else if ((rest = after(path, "/busy/"))) {
		answer->status = (int)strtol(rest, NULL, 10);
		answer->headers = "Retry-After: 7200\r\n";
	} else if ((rest = after(path, "/endless/"))) {
		answer->status = (int)strtol(rest, NULL, 10);
		answer->endless = true;
	} else if ((rest = after(path, "/to/"))) {
		lead(arena, rest + 3, (int)strtol(rest, NULL, 10), answer);
	} else if ((rest = after(path, "/hop/"))) {
		lead(arena,
		    arena_printf(arena, "/hop/%ld", strtol(rest, NULL, 10) - 1),
		    307, answer);
		answer->status = strcmp(rest, "0") == 0 ? 202 : 307;
	} else if (strcmp(path, "/circle") == 0) {
		lead(arena, "/circle", 308, answer);
	} else if (strcmp(path, "/cut") == 0) {
		answer->status = 0;
	} else if ((rest = after(path, "/hold/"))) {
		answer->hold_ms = (int)strtol(rest, NULL, 10);
	}
}

struct test_peer *fediverse_receiver(const char *host)
{
	return test_peer_new(host, by_path, NULL);
}

const char *fediverse_inbox(struct fediverse_site *site,
    const struct test_peer *receiver, const char *path)
{
	return arena_printf(
	    site->arena, "%s%s", test_peer_origin(receiver), path);
}

struct test_daemon *fediverse_outboxd(struct fediverse_site *site)
{
	return test_outboxd(site->node, NULL);
}

bool fediverse_becomes(
    struct fediverse_site *site, const char *id, const char *condition)
{
	return fediverse_until(site,
	    arena_printf(site->arena,
		"(SELECT %s FROM fediverse_outbound_queue WHERE id = '%s')",
		condition, id),
	    FEDIVERSE_SOON_MS);
}

void fediverse_now(struct fediverse_site *site)
{
	test_db_script(site->db,
	    "UPDATE fediverse_domains SET not_before = '-infinity';"
	    "UPDATE fediverse_outbound_queue SET next_retry_at = now()"
	    " WHERE status = 'pending';"
	    "NOTIFY postrider_activity");
}

#include "tests/integration/inbox_site.h"

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/lib/test_db.h"

enum { HEADERS_MAX = 8192 };

static void show(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const struct inbox_site *site = arg;

	*answer = (struct test_peer_answer){ .status = 404, .body = "{}" };
	for (size_t i = 0; i < site->page_count; i++)
		if (strcmp(site->pages[i].path, request->path) == 0)
			*answer = site->pages[i].answer;
}

void inbox_shows(struct inbox_site *site, const char *path,
    const struct test_peer_answer *answer)
{
	size_t i = 0;

	while (i < site->page_count && strcmp(site->pages[i].path, path) != 0)
		i++;
	cr_assert_lt(i, SITE_PAGES_MAX);
	site->pages[i] = (struct page){ path, *answer };
	if (i == site->page_count)
		site->page_count++;
}

struct key_pair key_pair_fresh(struct arena *arena)
{
	struct key_pair pair;

	pkey_fresh(arena, &pair.private_pem, &pair.public_pem);
	return pair;
}

const char *inbox_actor(
    struct inbox_site *site, const char *name, const struct key_pair *key)
{
	const char *url =
	    arena_printf(site->arena, "%s/users/%s", site->origin, name);
	struct buf buf;

	buf_init(&buf, site->arena, HEADERS_MAX);
	buf_printf(&buf,
	    "{\"@context\":\"https://www.w3.org/ns/activitystreams\","
	    "\"id\":\"%s\",\"type\":\"Person\",\"preferredUsername\":\"%s\","
	    "\"inbox\":\"%s/inbox\",\"outbox\":\"%s/outbox\","
	    "\"endpoints\":{\"sharedInbox\":\"%s/inbox\"},"
	    "\"publicKey\":{\"id\":\"%s#main-key\",\"owner\":\"%s\","
	    "\"publicKeyPem\":",
	    url, name, url, url, site->origin, url, url);
	json_quote(&buf, key ? key->public_pem : site->key.public_pem);
	buf_text(&buf, "}}");
	return buf.data;
}

void inbox_shows_actor(
    struct inbox_site *site, const char *name, const struct key_pair *key)
{
	inbox_shows(site, arena_printf(site->arena, "/users/%s", name),
	    &(const struct test_peer_answer){ .status = 200,
		.content_type = "application/activity+json",
		.body = inbox_actor(site, name, key) });
}

void inbox_site_begin(struct inbox_site *site, const char *const *settings)
{
	struct test_reply reply;

	*site = (struct inbox_site){ .page_count = 0 };
	site->world = world_new("nova.localhost", NULL, settings);
	site->arena = site->world->arena;
	world_sql(site->world, "UPDATE instance_settings SET fediverse = true");
	site->luna = test_peer_new("luna.localhost", show, site);
	site->origin = test_peer_origin(site->luna);
	site->bob = arena_printf(site->arena, "%s/users/bob", site->origin);
	site->key = key_pair_fresh(site->arena);
	inbox_shows_actor(site, "bob", NULL);
	reply = test_post(site->arena, site->world->node->port,
	    "/api/fediverse/actors", site->world->token,
	    "{\"username\":\"alice\"}");
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	site->alice_id = test_text(site->arena, &reply, "actor.id");
	site->alice = test_text(site->arena, &reply, "actor.url");
}

void inbox_site_end(struct inbox_site *site)
{
	struct test_peer *luna = site->luna;

	world_free(&site->world);
	test_peer_free(&luna);
	*site = (struct inbox_site){ .page_count = 0 };
}

const char *inbox_activity(struct inbox_site *site, const char *id,
    const char *type, const char *object)
{
	return arena_printf(site->arena,
	    "{\"@context\":\"https://www.w3.org/ns/activitystreams\","
	    "\"id\":\"%s/activities/%s\",\"type\":\"%s\",\"actor\":\"%s\","
	    "\"object\":%s}",
	    site->origin, id, type, site->bob, object);
}

static const char *fresh_create(struct inbox_site *site)
{
	static int number;

	return inbox_activity(site,
	    arena_printf(site->arena, "create-%d", ++number), "Create",
	    "{\"type\":\"Note\",\"content\":\"hello\"}");
}

/* The lines that sign the parcel. */
static const char *signed_lines(struct inbox_site *site,
    const struct parcel *parcel, const char *path, const char *host,
    const char *body)
{
	const struct http_header headers[] = {
		{ "Host", host },
		{ "Content-Type",
		    parcel->type ? parcel->type : "application/activity+json" },
	};
	const struct sig_message message = { .method = "POST",
		.scheme = "http",
		.target = path,
		.headers = headers,
		.header_count = COUNT(headers),
		.body = { body, strlen(body) } };
	struct http_header lines[SIG_HEADERS_MAX];
	struct sig_maker maker = { .style = parcel->style,
		.now_s = clock_wall_ms() / 1000 - parcel->age_s };
	struct pkey *key;
	struct buf buf;
	struct err err;
	size_t count;

	cr_assert(pkey_private(
	    (parcel->key ? parcel->key : &site->key)->private_pem, &key, &err));
	maker.key = key;
	maker.key_id = parcel->key_id
	    ? parcel->key_id
	    : arena_printf(site->arena, "%s#main-key", site->bob);
	count = sig_make(site->arena, &message, &maker, lines);
	pkey_free(&key);
	buf_init(&buf, site->arena, HEADERS_MAX);
	for (size_t i = 0; i < count; i++)
		buf_printf(&buf, "%s: %s\r\n", lines[i].name, lines[i].value);
	return buf.data;
}

struct test_reply inbox_deliver(
    struct inbox_site *site, const struct parcel *parcel)
{
	const char *path = parcel->path ? parcel->path : "/inbox";
	const char *host = parcel->host
	    ? parcel->host
	    : strstr(site->world->node->origin, "://") + 3;
	const char *body = parcel->body ? parcel->body : fresh_create(site);
	const struct test_request request = {
		.method = "POST",
		.path = path,
		.host = host,
		.content_type =
		    parcel->type ? parcel->type : "application/activity+json",
		.headers = parcel->is_unsigned
		    ? NULL
		    : signed_lines(site, parcel, path, host, body),
		.body = parcel->sent ? parcel->sent : body,
	};

	return test_http(site->arena, site->world->node->port, &request);
}

int64_t inbox_number(struct inbox_site *site, const char *query)
{
	return test_db_number(site->world->node->database, query);
}

#include "outboxd/asks_actor.h"

#include <strings.h>

#include "common/base/clock.h"
#include "common/fediverse/actor.h"
#include "common/fediverse/key_document.h"
#include "common/fediverse/signature.h"
#include "outboxd/asks.sql.h"

enum { HOPS_MAX = 3 };

#define ACCEPT \
	"application/activity+json, application/ld+json; " \
	"profile=\"https://www.w3.org/ns/activitystreams\""

static void sign(struct asks_run *run, const struct origin *target,
    const char *path, const struct sig_maker *maker)
{
	struct http_header host = { "Host", strstr(target->text, "://") + 3 };
	const struct sig_message message = {
		.method = "GET",
		.scheme = target->plain ? "http" : "https",
		.target = path,
		.headers = &host,
		.header_count = 1,
	};

	run->headers[0] = (struct http_header){ "Accept", ACCEPT };
	run->prepared =
	    1 + sig_make(run->arena, &message, maker, run->headers + 1);
	assert(run->prepared <= ASKS_HEADERS);
}

static bool key_open(struct asks_run *run, struct tx *tx,
    const struct node *node, struct sig_maker *maker, struct pkey **key,
    struct err *err)
{
	struct actor actor;
	bool found;

	if (!actor_instance(tx, &actor, &found, err))
		return false;
	if (!found)
		return err_set(err, ERR_ABSENT, "the instance has no actor");
	if (!actor_key(run->arena, node->key, &actor, key, err))
		return false;
	*maker = (struct sig_maker){
		.style = run->knocked_twice ? SIG_RFC9421 : SIG_CAVAGE,
		.key = *key,
		.key_id = actor_key_id(run->arena, &node->origin, &actor),
		.now_s = clock_wall_ms() / 1000,
	};
	return true;
}

/* clang-format off */
static const struct shape moved_shape[] = {
	SHAPE(TEXT, struct asks_moved, inbox, NULL),
	SHAPE(TEXT, struct asks_moved, actor, NULL),
	SHAPE(TEXT, struct asks_moved, leads_to, NULL),
	SHAPE_END(struct asks_moved),
};
/* clang-format on */

/* What is asked: the body's address, or whose inbox it names. */
static bool address_find(struct asks_run *run, struct tx *tx, struct err *err)
{
	const char *body =
	    arena_textn(run->arena, run->ask.body.data, run->ask.body.len);
	bool found;

	if (strcmp(run->ask.kind, "inbox") != 0) {
		run->url = body;
		return true;
	}
	if (!sql_opt(tx, &SQL_asks_moved, moved_shape, &run->moved, &found, err,
		v_text(body)))
		return false;
	if (!found)
		return err_set(err, ERR_ABSENT, "nobody has that inbox");
	run->url = run->moved.actor;
	return true;
}

bool asks_actor_prepare(struct asks_run *run, struct tx *tx,
    const struct node *node, struct err *err)
{
	struct sig_maker maker;
	struct origin target;
	struct pkey *key;
	const char *path;

	if (!run->url && !address_find(run, tx, err))
		return false;
	if (!url_parse(run->arena, run->url, &target, &path) ||
	    strcmp(target.text, run->ask.origin) != 0)
		return err_set(err, ERR_INVALID, "no usable address");
	if (!port_is_web(target.port))
		return err_set(err, ERR_INVALID, "the port is no web server's");
	if (!key_open(run, tx, node, &maker, &key, err))
		return false;
	sign(run, &target, path, &maker);
	pkey_free(&key);
	return true;
}

/* Of the same server: what another one shows says nothing about its actors. */
static const char *next_of(
    struct asks_run *run, const struct client_result *result)
{
	const char *next = result->location
	    ? url_join(run->arena, run->url, result->location)
	    : NULL;
	struct origin origin;
	const char *path;

	return next && url_parse(run->arena, next, &origin, &path) &&
		strcmp(origin.text, run->ask.origin) == 0
	    ? next
	    : NULL;
}

static bool moves(struct asks_run *run, const struct client_result *result)
{
	int code = result->status;
	const char *next;

	if ((code != 301 && code != 302 && code != 303 && code != 307 &&
		code != 308) ||
	    run->hops == HOPS_MAX)
		return false;
	next = next_of(run, result);
	if (!next)
		return false;
	run->hops++;
	run->url = next;
	return true;
}

bool asks_actor_again(struct asks_run *run, const struct client_result *result)
{
	int code = result->status;

	if ((code == 400 || code == 401) && !run->knocked_twice) {
		run->knocked_twice = true;
		return true;
	}
	return moves(run, result);
}

/* What it names is no reason to fail: what we know then stays. */
bool asks_actor_learn(struct asks_run *run, struct tx *tx, struct err *err)
{
	const char *text = run->ask.answer;
	const struct asks_moved *moved = &run->moved;
	struct key_document document;
	struct err why;

	if (!text ||
	    !actor_inboxes_read(run->arena,
		(struct bytes){ text, strlen(text) }, moved->actor,
		moved->leads_to, &document, &why)) {
		log_info("ask.no_inbox", F("peer", v_text(run->ask.origin)),
		    F("err", v_text(text ? why.text : "no text")));
		return true;
	}
	return sql_none(tx, &SQL_asks_learned, err, v_text(moved->inbox),
	    v_text(document.inbox), v_text(document.shared_inbox));
}

bool asks_actor_is_document(const struct client_result *result)
{
	static const char *const types[] = { "application/activity+json",
		"application/ld+json" };
	const char *type = result->content_type;
	size_t len = type ? strcspn(type, "; \t") : 0;

	for (size_t i = 0; i < COUNT(types); i++)
		if (len == strlen(types[i]) &&
		    strncasecmp(type, types[i], len) == 0)
			return true;
	return false;
}

#include "outboxd/asks_actor.h"

#include <strings.h>

#include "common/base/clock.h"
#include "common/fediverse/actor.h"
#include "common/fediverse/signature.h"

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
		.style = SIG_CAVAGE,
		.key = *key,
		.key_id = actor_key_id(run->arena, &node->origin, &actor),
		.now_s = clock_wall_ms() / 1000,
	};
	return true;
}

bool asks_actor_prepare(struct asks_run *run, struct tx *tx,
    const struct node *node, struct err *err)
{
	struct sig_maker maker;
	struct origin target;
	struct pkey *key;
	const char *path;

	run->url =
	    arena_textn(run->arena, run->ask.body.data, run->ask.body.len);
	if (!url_parse(run->arena, run->url, &target, &path) ||
	    strcmp(target.text, run->ask.origin) != 0)
		return err_set(err, ERR_INVALID, "no usable address");
	if (!key_open(run, tx, node, &maker, &key, err))
		return false;
	sign(run, &target, path, &maker);
	pkey_free(&key);
	return true;
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

/*
 * actor -- actor documents and their collections, for other servers.
 */
#include <strings.h>

#include "common/fediverse/follower.h"
#include "frontd/fediverse.h"

enum { DOCUMENT_MAX = 64 * 1024, BODY_MAX = 1024 };

bool actor_of_path(struct request *req, struct actor *actor, struct err *err)
{
	const char *name = path_text(req, "name");
	bool found;

	if (!fediverse_check(req->tx, err))
		return false;
	if (!*name)
		return actor_instance_make(
		    req->tx, req->node->key, &req->node->origin, actor, err);
	if (strlen(name) > ACTOR_NAME_MAX)
		return err_set(err, ERR_ABSENT, "No such actor");
	return actor_by_name(req->tx, name, actor, &found, err) &&
	    (found || err_set(err, ERR_ABSENT, "No such actor"));
}

/* ---- what the asker takes ---- */

static const char *const taken[] = { "application/activity+json",
	"application/ld+json", "application/json", "application/*", "*/*" };

static bool is_refused(const char *range, size_t len)
{
	const char *q = memmem(range, len, "q=0", 3);

	return q && strspn(q + 3, ".0") == strcspn(q + 3, ",; \t");
}

static bool is_taken(const char *range, size_t len)
{
	size_t name = strcspn(range, ",; \t");

	for (size_t i = 0; i < COUNT(taken); i++)
		if (name == strlen(taken[i]) &&
		    strncasecmp(range, taken[i], name) == 0)
			return !is_refused(range, len);
	return false;
}

/* Without Accept, or with it several times, everything is taken. */
static bool accepts(const struct http_head *head)
{
	const char *range = http_head_get(head, "accept");

	if (!range)
		return true;
	while (*range) {
		size_t len;

		range += strspn(range, ", \t");
		len = strcspn(range, ",");
		if (is_taken(range, len))
			return true;
		range += len;
	}
	return false;
}

static bool reply_document(
    struct request *req, int status, const char *text, struct err *err)
{
	if (!text)
		return err_set(err, ERR_BUG, "the document is too large");
	reply_header(req, "vary", "Accept");
	if (!accepts(req->head))
		return reply_json(req, 406,
		    "{\"error\":\"This is served as application/activity+json\""
		    ",\"statusCode\":406}");
	return reply_as(req, status, ACTIVITY_TYPE "; charset=utf-8", text);
}

static const char *text_of(const struct buf *buf)
{
	return buf_ok(buf) ? buf->data : NULL;
}

/* ---- handlers ---- */

/* GET /users/:name, GET /actor */
static bool actor_get(struct request *req, struct err *err)
{
	struct actor actor;
	struct buf buf;

	if (!actor_of_path(req, &actor, err))
		return false;
	buf_init(&buf, req->arena, DOCUMENT_MAX);
	actor_write(&buf, &req->node->origin, &actor);
	return reply_document(
	    req, actor.deleted_at ? 410 : 200, text_of(&buf), err);
}

static bool reply_collection(struct request *req, const struct actor *actor,
    const char *name, int64_t total, struct err *err)
{
	struct buf buf;

	buf_init(&buf, req->arena, DOCUMENT_MAX);
	collection_write(&buf,
	    arena_printf(req->arena, "%s/%s",
		actor_url(req->arena, &req->node->origin, actor), name),
	    total);
	return reply_document(req, 200, text_of(&buf), err);
}

static bool living_of_path(
    struct request *req, struct actor *actor, struct err *err)
{
	return actor_of_path(req, actor, err) &&
	    (!actor->deleted_at ||
		err_set(err, ERR_GONE, "The actor is deleted"));
}

/*
 * GET /users/:name/outbox: always empty. What is queued is owed to single
 * inboxes, and whether the application meant it for everybody is its to say.
 */
static bool outbox_get(struct request *req, struct err *err)
{
	struct actor actor;

	return living_of_path(req, &actor, err) &&
	    reply_collection(req, &actor, "outbox", 0, err);
}

/* GET /users/:name/followers: how many, not who. */
static bool followers_get(struct request *req, struct err *err)
{
	struct actor actor;
	int64_t total;

	return living_of_path(req, &actor, err) &&
	    followers_count(req->tx, actor.id, &total, err) &&
	    reply_collection(req, &actor, "followers", total, err);
}

/* clang-format off */
const struct route actor_routes[] = {
	{ "GET", "/actor",                 ANYONE, BODY_MAX, 0, 0, actor_get },
	{ "GET", "/actor/outbox",          ANYONE, BODY_MAX, 0, 0, outbox_get },
	{ "GET", "/actor/followers",       ANYONE, BODY_MAX, 0, 0, followers_get },
	{ "GET", "/users/:name",           ANYONE, BODY_MAX, 0, 0, actor_get },
	{ "GET", "/users/:name/outbox",    ANYONE, BODY_MAX, 0, 0, outbox_get },
	{ "GET", "/users/:name/followers", ANYONE, BODY_MAX, 0, 0, followers_get },
	{ .method = NULL }
};
/* clang-format on */

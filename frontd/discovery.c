/*
 * discovery -- how other servers find whom we speak for: WebFinger, host-meta,
 * NodeInfo.
 *
 * Anybody's browser may read these; refusals too.
 */
#include <strings.h>

#include "common/base/build.h"
#include "common/federation/settings.h"
#include "frontd/fediverse.h"

#define JRD_TYPE "application/jrd+json; charset=utf-8"
#define XRD_TYPE "application/xrd+xml; charset=utf-8"
#define NODEINFO_NS "http://nodeinfo.diaspora.software/ns/schema/"
#define ACTIVITY_NS "https://www.w3.org/ns/activitystreams"

enum { BODY_MAX = 1024, RESOURCE_MAX = 2048 };

static void open_to_all(struct request *req)
{
	reply_header(req, "access-control-allow-origin", "*");
}

/* The usual shape of an error, which a browser may read as well. */
static bool refuse(struct request *req, int status, const char *text)
{
	struct json_out out = { .buf = &req->reply };

	reply_json(req, status, "");
	open_to_all(req);
	json_open(&out, NULL);
	json_put_text(&out, "error", text);
	json_put_int(&out, "statusCode", status);
	json_close(&out);
	return true;
}

static const char *ours(struct request *req, const char *path)
{
	return arena_printf(req->arena, "%s%s", req->node->origin.text, path);
}

/* host, with the port where the origin has one. */
static const char *authority(const struct request *req)
{
	return strstr(req->node->origin.text, "://") + 3;
}

static const char *after(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncasecmp(text, prefix, len) == 0 ? text + len : NULL;
}

/* ---- WebFinger ---- */

static bool is_our_host(const struct request *req, const char *host)
{
	return strcasecmp(host, authority(req)) == 0 ||
	    strcasecmp(host, req->node->origin.host) == 0;
}

/* "" is the instance itself; NULL: nobody of ours. */
static const char *name_of_acct(struct request *req, const char *acct)
{
	const char *at;
	const char *name;

	acct += *acct == '@';
	at = strrchr(acct, '@');
	if (!at || !is_our_host(req, at + 1))
		return NULL;
	name = arena_textn(req->arena, acct, (size_t)(at - acct));
	return is_our_host(req, name) ? "" : name;
}

static const char *name_of_url(struct request *req, const char *url)
{
	const char *path = after(url, req->node->origin.text);
	const char *name;

	if (!path)
		return NULL;
	if (!*path || strcmp(path, "/") == 0 || strcmp(path, "/actor") == 0)
		return "";
	name = after(path, "/users/");
	return name && *name ? name : NULL;
}

static const char *name_of(struct request *req, const char *resource)
{
	const char *acct = after(resource, "acct:");

	return acct ? name_of_acct(req, acct) : name_of_url(req, resource);
}

static bool subject_find(struct request *req, const char *name,
    struct actor *actor, bool *found, struct err *err)
{
	*found = true;
	if (!*name)
		return actor_instance_make(
		    req->tx, req->node->key, &req->node->origin, actor, err);
	if (strlen(name) <= ACTOR_NAME_MAX)
		return actor_by_name(req->tx, name, actor, found, err);
	*found = false;
	return true;
}

static void put_link(
    struct json_out *out, const char *rel, const char *type, const char *href)
{
	json_open(out, NULL);
	json_put_text(out, "rel", rel);
	if (type)
		json_put_text(out, "type", type);
	json_put_text(out, "href", href);
	json_close(out);
}

/* FEP-d556: the instance's actor is also its Service. */
static bool reply_subject(struct request *req, const struct actor *actor)
{
	const char *url = actor_url(req->arena, &req->node->origin, actor);
	struct json_out out = { .buf = &req->reply };

	reply_as(req, 200, JRD_TYPE, "");
	open_to_all(req);
	json_open(&out, NULL);
	json_put_text(&out, "subject",
	    arena_printf(
		req->arena, "acct:%s@%s", actor->username, authority(req)));
	json_open_list(&out, "aliases");
	json_put_text(&out, NULL, url);
	json_close_list(&out);
	json_open_list(&out, "links");
	put_link(&out, "self", ACTIVITY_TYPE, url);
	if (actor->is_instance)
		put_link(&out, ACTIVITY_NS "#Service", ACTIVITY_TYPE, url);
	json_close_list(&out);
	json_close(&out);
	return true;
}

/* GET /.well-known/webfinger?resource= */
static bool webfinger_get(struct request *req, struct err *err)
{
	const char *resource = query_text(req, "resource");
	const char *name;
	struct actor actor;
	bool found;

	if (!fediverse_check(req->tx, err))
		return false;
	if (!*resource || strlen(resource) > RESOURCE_MAX)
		return refuse(req, 400, "resource is required");
	name = name_of(req, resource);
	if (!name)
		return refuse(req, 404, "Not found");
	if (!subject_find(req, name, &actor, &found, err))
		return false;
	if (!found)
		return refuse(req, 404, "Not found");
	if (actor.deleted_at)
		return refuse(req, 410, "Gone");
	return reply_subject(req, &actor);
}

/* ---- host-meta ---- */

/* GET /.well-known/host-meta */
static bool host_meta_get(struct request *req, struct err *err)
{
	if (!fediverse_check(req->tx, err))
		return false;
	reply_as(req, 200, XRD_TYPE,
	    arena_printf(req->arena,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\">\n"
		"  <Link rel=\"lrdd\" template=\"%s"
		"/.well-known/webfinger?resource={uri}\"/>\n"
		"</XRD>\n",
		req->node->origin.text));
	open_to_all(req);
	return true;
}

/* ---- NodeInfo ---- */

/* GET /.well-known/nodeinfo; FEP-2677: with a link to the instance's actor. */
static bool nodeinfo_links_get(struct request *req, struct err *err)
{
	struct json_out out = { .buf = &req->reply };

	if (!fediverse_check(req->tx, err))
		return false;
	reply_json(req, 200, "");
	open_to_all(req);
	json_open(&out, NULL);
	json_open_list(&out, "links");
	put_link(&out, NODEINFO_NS "2.1", NULL, ours(req, "/nodeinfo/2.1"));
	put_link(&out, NODEINFO_NS "2.0", NULL, ours(req, "/nodeinfo/2.0"));
	put_link(&out, ACTIVITY_NS "#Application", ACTIVITY_TYPE,
	    ours(req, "/actor"));
	json_close_list(&out);
	json_close(&out);
	return true;
}

static void put_nodeinfo(struct json_out *out, const char *version,
    const struct settings *settings, int64_t users)
{
	json_open(out, NULL);
	json_put_text(out, "version", version);
	json_open(out, "software");
	json_put_text(out, "name", "postrider");
	json_put_text(out, "version", POSTRIDER_VERSION);
	json_close(out);
	json_open_list(out, "protocols");
	json_put_text(out, NULL, "activitypub");
	json_close_list(out);
	json_open(out, "services");
	json_open_list(out, "inbound");
	json_close_list(out);
	json_open_list(out, "outbound");
	json_close_list(out);
	json_close(out);
	json_put_bool(out, "openRegistrations", settings->registration_open);
	json_open(out, "usage");
	json_open(out, "users");
	json_put_int(out, "total", users);
	json_close(out);
	json_close(out);
	json_open(out, "metadata");
	json_put_text(out, "nodeName", settings->instance_name);
	json_close(out);
	json_close(out);
}

static bool nodeinfo_reply(
    struct request *req, const char *version, struct err *err)
{
	struct json_out out = { .buf = &req->reply };
	struct settings settings;
	int64_t users;

	if (!fediverse_check(req->tx, err) ||
	    !settings_read(req->tx, &settings, err) ||
	    !actor_count(req->tx, &users, err))
		return false;
	reply_as(req, 200,
	    arena_printf(req->arena,
		"application/json; profile=\"" NODEINFO_NS
		"%s#\"; charset=utf-8",
		version),
	    "");
	open_to_all(req);
	put_nodeinfo(&out, version, &settings, users);
	return true;
}

/* GET /nodeinfo/2.0 */
static bool nodeinfo_20_get(struct request *req, struct err *err)
{
	return nodeinfo_reply(req, "2.0", err);
}

/* GET /nodeinfo/2.1 */
static bool nodeinfo_21_get(struct request *req, struct err *err)
{
	return nodeinfo_reply(req, "2.1", err);
}

/* clang-format off */
const struct route discovery_routes[] = {
	{ "GET", "/.well-known/webfinger", ANYONE, BODY_MAX, 0, 0, webfinger_get },
	{ "GET", "/.well-known/host-meta", ANYONE, BODY_MAX, 0, 0, host_meta_get },
	{ "GET", "/.well-known/nodeinfo",  ANYONE, BODY_MAX, 0, 0, nodeinfo_links_get },
	{ "GET", "/nodeinfo/2.0",          ANYONE, BODY_MAX, 0, 0, nodeinfo_20_get },
	{ "GET", "/nodeinfo/2.1",          ANYONE, BODY_MAX, 0, 0, nodeinfo_21_get },
	{ .method = NULL }
};
/* clang-format on */

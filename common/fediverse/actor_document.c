#include "common/fediverse/actor_document.h"

#include <time.h>

#define ACTIVITY_CONTEXT "https://www.w3.org/ns/activitystreams"
#define RFC9421 "https://datatracker.ietf.org/doc/html/rfc9421"

enum { DATE_MAX = 32 };

/* Addresses of an actor: its own and what hangs below it. */
struct place {
	struct arena *arena;
	const char *url;
};

static void put_below(struct json_out *out, const struct place *place,
    const char *name, const char *suffix)
{
	json_put_text(
	    out, name, arena_printf(place->arena, "%s%s", place->url, suffix));
}

static void put_context(struct json_out *out)
{
	json_open_list(out, "@context");
	json_put_text(out, NULL, ACTIVITY_CONTEXT);
	json_put_text(out, NULL, "https://w3id.org/security/v1");
	json_open(out, NULL);
	json_put_text(
	    out, "manuallyApprovesFollowers", "as:manuallyApprovesFollowers");
	json_put_text(
	    out, "implements", "https://w3id.org/fep/844e#implements");
	json_close(out);
	json_close_list(out);
}

static void put_key(
    struct json_out *out, const struct place *place, const struct actor *actor)
{
	json_open(out, "publicKey");
	put_below(out, place, "id", "#main-key");
	json_put_text(out, "owner", place->url);
	json_put_text(out, "publicKeyPem", actor->public_key_pem);
	json_close(out);
}

static void put_implements(struct json_out *out)
{
	json_open_list(out, "implements");
	json_open(out, NULL);
	json_put_text(out, "href", RFC9421);
	json_put_text(out, "name", "RFC-9421: HTTP Message Signatures");
	json_close(out);
	json_close_list(out);
}

/* What runs us says so itself, or through those it speaks for. */
static void put_capabilities(struct json_out *out, const struct actor *actor)
{
	if (actor->is_instance) {
		put_implements(out);
		return;
	}
	json_open(out, "generator");
	json_put_text(out, "type", "Application");
	put_implements(out);
	json_close(out);
}

static const char *date_text(int64_t ms, char text[DATE_MAX])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return text;
}

static void put_tombstone(
    struct json_out *out, const struct place *place, const struct actor *actor)
{
	char date[DATE_MAX];

	json_put_text(out, "type", "Tombstone");
	json_put_text(out, "formerType", actor->kind);
	json_put_text(out, "deleted", date_text(actor->deleted_at, date));
	put_key(out, place, actor);
}

static void put_living(struct json_out *out, const struct place *place,
    const struct origin *origin, const struct actor *actor)
{
	char date[DATE_MAX];

	json_put_text(out, "type", actor->kind);
	json_put_text(out, "preferredUsername", actor->username);
	json_put_text(out, "name",
	    actor->display_name ? actor->display_name : actor->username);
	json_put_text(out, "url", place->url);
	json_put_text(out, "published", date_text(actor->created_at, date));
	put_below(out, place, "inbox", "/inbox");
	put_below(out, place, "outbox", "/outbox");
	put_below(out, place, "followers", "/followers");
	json_put_bool(
	    out, "manuallyApprovesFollowers", actor->approves_followers);
	json_open(out, "endpoints");
	json_put_text(out, "sharedInbox",
	    arena_printf(place->arena, "%s/inbox", origin->text));
	json_close(out);
	put_key(out, place, actor);
	put_capabilities(out, actor);
}

void actor_write(
    struct buf *out, const struct origin *origin, const struct actor *actor)
{
	struct arena *arena = arena_new();
	struct json_out json = { .buf = out };
	const struct place place = { arena, actor_url(arena, origin, actor) };

	json_open(&json, NULL);
	put_context(&json);
	json_put_text(&json, "id", place.url);
	if (actor->deleted_at)
		put_tombstone(&json, &place, actor);
	else
		put_living(&json, &place, origin, actor);
	json_close(&json);
	arena_free(&arena);
}

void collection_write(struct buf *out, const char *id, int64_t total)
{
	struct json_out json = { .buf = out };

	json_open(&json, NULL);
	json_put_text(&json, "@context", ACTIVITY_CONTEXT);
	json_put_text(&json, "id", id);
	json_put_text(&json, "type", "OrderedCollection");
	json_put_int(&json, "totalItems", total);
	json_close(&json);
}

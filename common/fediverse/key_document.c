#include "common/fediverse/key_document.h"

#include "common/crypto/pkey.h"
#include "common/fediverse/activity.h"
#include "common/fediverse/multikey.h"
#include "common/net/url.h"

enum { KEYS_MAX = 16 };

const char *key_document_url(struct arena *arena, const char *key_id)
{
	return arena_textn(arena, key_id, strcspn(key_id, "#"));
}

static bool is_text(const struct json *value, const char *text)
{
	const char *own = json_string(value);

	return own && strcmp(own, text) == 0;
}

static bool is_same_server(
    struct arena *arena, const char *url, const char *other)
{
	struct origin a;
	struct origin b;

	return strlen(url) <= ACTIVITY_URL_MAX &&
	    origin_parse(arena, url, &a) && origin_parse(arena, other, &b) &&
	    strcmp(a.text, b.text) == 0;
}

/* ---- the key ---- */

static const char *pem_of(struct arena *arena, const struct json *key)
{
	const char *pem = json_string(json_member(key, "publicKeyPem"));
	const char *multi = json_string(json_member(key, "publicKeyMultibase"));

	if (pem)
		return pem;
	return multi ? multikey_pem(arena, multi) : NULL;
}

static const char *owner_of(const struct json *key)
{
	const char *owner = json_string(json_member(key, "owner"));

	return owner ? owner : json_string(json_member(key, "controller"));
}

/* One of a list, or the only one. */
static const struct json *key_in(const struct json *keys, const char *key_id)
{
	if (json_type(keys) == JSON_OBJECT)
		return is_text(json_member(keys, "id"), key_id) ? keys : NULL;
	if (json_type(keys) != JSON_ARRAY)
		return NULL;
	for (size_t i = 0; i < json_count(keys) && i < KEYS_MAX; i++) {
		const struct json *key = json_element(keys, i);

		if (is_text(json_member(key, "id"), key_id))
			return key;
	}
	return NULL;
}

static const struct json *key_find(const struct json *value, const char *key_id)
{
	const struct json *key =
	    key_in(json_member(value, "publicKey"), key_id);

	if (!key)
		key = key_in(json_member(value, "assertionMethod"), key_id);
	return key ? key : key_in(value, key_id);
}

/* May a signature be checked with it at all? */
static bool is_usable(const char *pem, struct err *err)
{
	struct pkey *key;

	if (!pkey_public(pem, &key, err))
		return false;
	pkey_free(&key);
	return true;
}

static bool key_read(struct arena *arena, const struct json *value,
    const char *key_id, struct key_document *document, struct err *err)
{
	const struct json *key = key_find(value, key_id);
	const char *pem = key ? pem_of(arena, key) : NULL;
	const char *owner = key ? owner_of(key) : NULL;

	if (!pem || !owner)
		return err_set(
		    err, ERR_UNAUTHORIZED, "the document shows no such key");
	if (!is_same_server(arena, owner, key_id))
		return err_set(err, ERR_UNAUTHORIZED,
		    "the key's owner is of another server");
	if (key != value && !is_text(json_member(value, "id"), owner))
		return err_set(err, ERR_UNAUTHORIZED,
		    "the document shows a key of somebody else");
	document->owner = owner;
	document->pem = pem;
	return is_usable(pem, err);
}

/* ---- inboxes ---- */

/* Of the actor's server, or of the one that leads to. */
static bool is_credible(struct arena *arena, const char *inbox,
    const char *actor, const char *led_to)
{
	return is_same_server(arena, inbox, actor) ||
	    (led_to && is_same_server(arena, inbox, led_to));
}

static void inboxes_read(struct arena *arena, const struct json *value,
    const char *actor, const char *led_to, struct key_document *document)
{
	const char *inbox = json_string(json_member(value, "inbox"));
	const char *shared = json_string(
	    json_member(json_member(value, "endpoints"), "sharedInbox"));

	if (!inbox || !is_credible(arena, inbox, actor, led_to))
		return;
	document->inbox = inbox;
	if (shared && is_credible(arena, shared, actor, led_to))
		document->shared_inbox = shared;
}

/* ---- what it says that its server understands ---- */

#define RFC9421 "https://datatracker.ietf.org/doc/html/rfc9421"

static bool is_rfc9421(const struct json *one)
{
	return is_text(one, RFC9421) ||
	    is_text(json_member(one, "href"), RFC9421);
}

static bool names_rfc9421(const struct json *implements)
{
	if (json_type(implements) != JSON_ARRAY)
		return is_rfc9421(implements);
	for (size_t i = 0; i < json_count(implements) && i < KEYS_MAX; i++)
		if (is_rfc9421(json_element(implements, i)))
			return true;
	return false;
}

/* Itself an application, or an actor whose generator is one. */
static bool takes_rfc9421(const struct json *value)
{
	return names_rfc9421(json_member(value, "implements")) ||
	    names_rfc9421(
		json_member(json_member(value, "generator"), "implements"));
}

static bool object_read(struct arena *arena, struct bytes text,
    const struct json **value, struct err *err)
{
	if (!json_parse(arena, text, value, err))
		return false;
	return json_type(*value) == JSON_OBJECT ||
	    err_set(err, ERR_UNAUTHORIZED, "no JSON object");
}

bool key_document_read(struct arena *arena, struct bytes text,
    const char *key_id, struct key_document *document, struct err *err)
{
	struct key_document read = { .owner = NULL };
	const struct json *value;

	if (!object_read(arena, text, &value, err) ||
	    !key_read(arena, value, key_id, &read, err))
		return false;
	if (is_text(json_member(value, "id"), read.owner))
		inboxes_read(arena, value, read.owner, NULL, &read);
	read.takes_rfc9421 = takes_rfc9421(value);
	*document = read;
	return true;
}

bool actor_inboxes_read(struct arena *arena, struct bytes text,
    const char *actor, const char *led_to, struct key_document *document,
    struct err *err)
{
	struct key_document read = { .owner = actor };
	const struct json *value;

	if (!object_read(arena, text, &value, err))
		return false;
	if (is_text(json_member(value, "id"), actor))
		inboxes_read(arena, value, actor, led_to, &read);
	if (!read.inbox)
		return err_set(
		    err, ERR_UNAUTHORIZED, "the document shows no inbox");
	*document = read;
	return true;
}

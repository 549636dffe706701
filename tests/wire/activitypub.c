#include "tests/wire/activitypub.h"

#include <criterion/criterion.h>

#include "common/crypto/digest.h"

enum { FILE_MAX = 4 << 20 };

const char *ap_text(const struct json *value, const char *name)
{
	return json_string(json_member(value, name));
}

int64_t ap_number(const struct json *value, const char *name)
{
	int64_t number = 0;

	cr_assert(json_whole(json_member(value, name), &number), "%s", name);
	return number;
}

const struct json *ap_file(struct arena *arena, const char *name)
{
	const char *dir = getenv("POSTRIDER_WIRE");
	const struct json *value = NULL;
	struct err err = { 0 };
	const char *path;
	char *data;
	FILE *file;
	size_t len;

	if (!dir)
		cr_skip_test("the vectors are not here (POSTRIDER_WIRE)");
	path = arena_printf(arena, "%s/activitypub/%s", dir, name);
	file = fopen(path, "r");
	cr_assert(file, "no vectors %s", path);
	data = arena_alloc(arena, FILE_MAX);
	len = fread(data, 1, FILE_MAX, file);
	fclose(file);
	cr_assert(json_parse(arena, (struct bytes){ data, len }, &value, &err),
	    "%s: %s", name, err.text);
	return value;
}

static struct sig_message message_read(
    struct arena *arena, const struct json *vector)
{
	const char *raw = ap_text(vector, "raw_b64");
	struct http_head *head = ARENA_NEW(arena, struct http_head);
	struct bytes bytes = { NULL, 0 };
	size_t used = 0;
	int status = 0;

	cr_assert(base64_read(arena, raw, strlen(raw), &bytes));
	cr_assert_eq(
	    http_parse_head(arena, bytes.data, bytes.len, head, &used, &status),
	    HTTP_DONE, "%s: %d", ap_text(vector, "id"), status);
	return (struct sig_message){
		.method = head->method,
		.scheme = ap_text(json_member(vector, "request"), "scheme"),
		.target = head->target,
		.headers = head->headers,
		.header_count = head->header_count,
		.body = { (const char *)bytes.data + used, bytes.len - used },
	};
}

static void add(struct arena *arena, struct ap_requests *all,
    const struct json *vector, const char *actor)
{
	all->items[all->count++] = (struct ap_request){
		.id = ap_text(vector, "id"),
		.vector = vector,
		.actor = actor,
		.now_s = ap_number(vector, "now"),
		.message = message_read(arena, vector),
	};
}

struct ap_requests ap_requests(struct arena *arena, const char *name)
{
	const struct json *file = ap_file(arena, name);
	const struct json *vectors = json_member(file, "vectors");
	struct ap_requests all = {
		.items = arena_array(arena, 256, sizeof(struct ap_request)),
	};

	for (size_t i = 0; i < json_count(vectors); i++) {
		const struct json *vector = json_element(vectors, i);
		const struct json *inner = json_member(vector, "requests");

		if (!inner)
			add(arena, &all, vector, ap_text(file, "actor"));
		for (size_t j = 0; j < json_count(inner); j++)
			add(arena, &all, json_element(inner, j),
			    ap_text(vector, "actor"));
	}
	return all;
}

size_t ap_signature_count(const struct json *vector)
{
	const struct json *list = json_member(vector, "signatures");

	return list ? json_count(list) : 1;
}

const struct json *ap_signature(const struct json *vector, size_t place)
{
	const struct json *list = json_member(vector, "signatures");

	return list ? json_element(list, place) : vector;
}

static void key_end(void *arg)
{
	struct pkey *key = arg;

	pkey_free(&key);
}

const struct pkey *ap_key_of(struct arena *arena, const char *pem, bool secret)
{
	struct pkey *key = NULL;
	struct err err = { 0 };

	cr_assert(secret ? pkey_private(pem, &key, &err)
			 : pkey_public(pem, &key, &err),
	    "%s", err.text);
	arena_at_end(arena, key_end, key);
	return key;
}

static const struct pkey *key_named(
    struct arena *arena, const char *name, bool secret)
{
	const struct json *entry =
	    json_member(ap_file(arena, "keys.json"), name);

	return ap_key_of(arena,
	    ap_text(entry, secret ? "private_pkcs8_pem" : "public_spki_pem"),
	    secret);
}

const struct pkey *ap_key(
    struct arena *arena, const struct ap_request *request, const char *key_id)
{
	size_t len = strlen(request->actor);

	if (strncmp(key_id, request->actor, len) != 0)
		return NULL;
	if (strcmp(key_id + len, "#main-key") == 0)
		return key_named(arena, "alice-rsa", false);
	if (strcmp(key_id + len, "#ed25519-key") == 0)
		return key_named(arena, "alice-ed25519", false);
	return NULL;
}

const struct pkey *ap_private(struct arena *arena, const char *name)
{
	return key_named(arena, name, true);
}

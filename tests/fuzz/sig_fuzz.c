/*
 * sig_fuzz -- any bytes as a signed request: what a stranger's signature says
 * about itself is read before anybody knows who sent it.
 *
 * Whatever is refused is refused with a reason; whatever is taken has a key,
 * something that was signed, and does not verify with a key of nobody's.
 */
#include "common/fediverse/sig_field.h"
#include "common/fediverse/signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW_S = 1767225600 };

/* RFC 8032, 7.1, test 2. */
static const char pem[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"
    "-----END PUBLIC KEY-----\n";

static void check(const struct sig_claims *claims, const struct pkey *key)
{
	assert(claims->count > 0 && claims->count <= SIG_CLAIMS_MAX);
	for (size_t i = 0; i < claims->count; i++) {
		const struct sig_claim *claim = &claims->items[i];
		struct err err = { 0 };

		assert(claim->key_id && *claim->key_id && claim->bases[0]);
		assert(!sig_check(claim, key, &err));
		assert(err.code == ERR_UNAUTHORIZED && err.text[0]);
	}
}

static void read_request(struct arena *arena, struct bytes bytes)
{
	struct http_head head;
	struct sig_claims claims;
	struct sig_message message;
	struct pkey *key = NULL;
	struct err err = { 0 };
	size_t used = 0;
	int status;

	if (http_parse_head(arena, bytes.data, bytes.len, &head, &used,
		&status) != HTTP_DONE)
		return;
	message = (struct sig_message){
		.method = head.method,
		.scheme = "https",
		.target = head.target,
		.headers = head.headers,
		.header_count = head.header_count,
		.body = { (const char *)bytes.data + used, bytes.len - used },
	};
	if (!sig_read(arena, &message, NOW_S, &claims, &err)) {
		assert(err.text[0] &&
		    (err.code == ERR_INVALID || err.code == ERR_UNAUTHORIZED));
		return;
	}
	if (!pkey_public(pem, &key, &err))
		abort();
	check(&claims, key);
	pkey_free(&key);
}

/* What was read of a dictionary is read alike from what it was made of. */
static void read_field(struct arena *arena, struct bytes bytes)
{
	const char *text = arena_textn(arena, bytes.data, bytes.len);
	struct field_members members;
	struct field_member again;

	if (!field_dictionary(arena, text, &members))
		return;
	assert(members.count > 0);
	for (size_t i = 0; i < members.count; i++)
		if (members.items[i].is_list)
			assert(
			    field_list(arena, members.items[i].raw, &again) &&
			    again.count == members.items[i].count &&
			    !strcmp(again.raw, members.items[i].raw));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct bytes bytes = { data, size };

	read_request(arena, bytes);
	read_field(arena, bytes);
	arena_free(&arena);
	return 0;
}

#include <criterion/criterion.h>

#include "common/crypto/digest.h"
#include "common/fediverse/sig_base.h"
#include "common/fediverse/signature.h"
#include "tests/wire/activitypub.h"

/* Of $POSTRIDER_WIRE/activitypub: what must verify, and what must not. */
static const char *const accepted[] = { "signed-requests.json",
	"recorded-libs.json", "recorded-fedify.json" };
enum { ACCEPTED = 73, REFUSED = 65, RFC_REQUESTS = 8, RFC_TRANSFORMS = 6 };

static struct arena *arena;

static void begin(void)
{
	arena = arena_new();
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(activitypub, .init = begin, .fini = end, .timeout = 120);

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

static struct bytes decoded(const char *text)
{
	struct bytes bytes = { NULL, 0 };

	cr_assert(base64_read(arena, text, strlen(text), &bytes));
	return bytes;
}

/* The whole check of an inbox: NULL, or why not. */
static const char *verdict(const struct ap_request *request)
{
	struct sig_claims claims;
	struct err err = { 0 };
	const struct pkey *key;

	if (!sig_read(arena, &request->message, request->now_s, &claims, &err))
		return arena_text(arena, err.text);
	key = ap_key(arena, request, claims.items[0].key_id);
	if (!key)
		return "unknown key";
	return sig_check(&claims.items[0], key, &err)
	    ? NULL
	    : arena_text(arena, err.text);
}

Test(activitypub, what_must_verify_does)
{
	size_t count = 0;

	for (size_t f = 0; f < COUNT(accepted); f++) {
		struct ap_requests all = ap_requests(arena, accepted[f]);

		for (size_t i = 0; i < all.count; i++, count++)
			cr_expect_null(verdict(&all.items[i]), "%s: %s",
			    all.items[i].id, verdict(&all.items[i]));
	}
	cr_expect_eq(count, ACCEPTED);
}

Test(activitypub, every_refusal_has_the_stated_reason)
{
	struct ap_requests all = ap_requests(arena, "rejects.json");

	for (size_t i = 0; i < all.count; i++) {
		const char *why = verdict(&all.items[i]);
		const char *stated = ap_text(
		    json_member(all.items[i].vector, "checks"), "reference");

		cr_expect_not_null(why, "%s is taken", all.items[i].id);
		cr_expect(why &&
			!strcmp(stated, arena_printf(arena, "reject: %s", why)),
		    "%s: %s, not %s", all.items[i].id, stated, why);
	}
	cr_expect_eq(all.count, REFUSED);
}

/* Which claim of the request is the one that the vector describes. */
static const struct sig_claim *claim_of(
    const struct sig_claims *claims, const char *label)
{
	for (size_t i = 0; label && i < claims->count; i++)
		if (strcmp(claims->items[i].label, label) == 0)
			return &claims->items[i];
	return &claims->items[0];
}

static void reproduce(
    const struct ap_request *request, const struct json *signature)
{
	const char *base = ap_text(signature, "signature_base");
	const char *name = ap_text(signature, "key");
	struct sig_claims claims;
	struct err err = { 0 };
	const struct sig_claim *claim;
	struct bytes made;

	cr_assert(
	    sig_read(arena, &request->message, request->now_s, &claims, &err));
	claim = claim_of(&claims, ap_text(signature, "label"));
	cr_expect(!strcmp(claim->bases[0], base) ||
		(claim->bases[1] && !strcmp(claim->bases[1], base)),
	    "%s: %s", request->id, claim->bases[0]);
	made = pkey_sign(arena,
	    ap_private(arena, name ? name : ap_text(request->vector, "key")),
	    bytes_of(base));
	cr_expect_str_eq(base64_text(arena, made),
	    ap_text(signature, "signature_b64"), "%s", request->id);
}

Test(activitypub, what_must_verify_is_reproduced_from_the_private_key)
{
	size_t count = 0;

	for (size_t f = 0; f < COUNT(accepted); f++) {
		struct ap_requests all = ap_requests(arena, accepted[f]);

		for (size_t i = 0; i < all.count; i++, count++)
			for (size_t j = 0;
			     j < ap_signature_count(all.items[i].vector); j++)
				reproduce(&all.items[i],
				    ap_signature(all.items[i].vector, j));
	}
	cr_expect_eq(count, ACCEPTED);
}

/* Mastodon's list of components is ours too. */
Test(activitypub, our_rfc9421_headers_are_the_recorded_ones)
{
	struct ap_requests all = ap_requests(arena, "signed-requests.json");
	const struct ap_request *request = all.items;
	struct http_header headers[SIG_HEADERS_MAX];
	struct http_header host[1];
	struct sig_message bare;
	struct sig_maker maker = { .style = SIG_RFC9421 };

	while (strcmp(request->id, "rfc9421-rsa-mastodon") != 0)
		cr_assert(++request < all.items + all.count);
	bare = request->message;
	host[0] =
	    (struct http_header){ "Host", sig_field(arena, &bare, "host") };
	bare.headers = host;
	bare.header_count = 1;
	maker.key = ap_private(arena, "alice-rsa");
	maker.key_id = ap_text(request->vector, "key_id");
	maker.now_s = request->now_s;
	cr_assert_eq(sig_make(arena, &bare, &maker, headers), 3);
	for (size_t i = 0; i < 3; i++)
		cr_expect_str_eq(headers[i].value,
		    sig_field(arena, &request->message, headers[i].name), "%s",
		    headers[i].name);
}

/* ---- RFC 9421's own examples ---- */

static struct sig_message rfc_message(const struct json *vector)
{
	const struct json *request = json_member(vector, "request");
	const struct json *list = json_member(request, "headers");
	struct http_header *headers =
	    arena_array(arena, json_count(list), sizeof(*headers));

	for (size_t i = 0; i < json_count(list); i++) {
		const struct json *pair = json_element(list, i);

		headers[i] = (struct http_header){
			json_string(json_element(pair, 0)),
			json_string(json_element(pair, 1)),
		};
	}
	return (struct sig_message){
		.method = ap_text(request, "method"),
		.scheme = ap_text(request, "scheme"),
		.target = ap_text(request, "target"),
		.headers = headers,
		.header_count = json_count(list),
		.body = decoded(ap_text(request, "body_b64")),
	};
}

/* The primitives that we have; the others are the RFC's only. */
static bool ours(const char *algorithm)
{
	return !strcmp(algorithm, "ed25519") ||
	    !strcmp(algorithm, "rsa-v1_5-sha256");
}

static const struct json *rfc_key(
    const struct json *file, const struct json *vector)
{
	return json_member(
	    json_member(file, "keys"), ap_text(vector, "key_id"));
}

static const char *rfc_private(const struct json *key)
{
	const struct json *pem = json_member(key, "pem");
	const char *text = ap_text(pem, "RSA PRIVATE KEY");

	return text ? text : ap_text(pem, "PRIVATE KEY");
}

Test(activitypub, bases_of_the_rfc_match_and_verify)
{
	const struct json *file = ap_file(arena, "rfc9421-vectors.json");
	const struct json *vectors = json_member(file, "vectors");
	size_t checked = 0;

	for (size_t i = 0; i < json_count(vectors); i++) {
		const struct json *vector = json_element(vectors, i);
		struct sig_message message = rfc_message(vector);
		const char *base = sig_rfc9421_base(
		    arena, &message, ap_text(vector, "params_text"));
		const char *signature = ap_text(vector, "signature_b64");
		const struct json *key = rfc_key(file, vector);
		struct bytes made;

		cr_assert(
		    base && !strcmp(base, ap_text(vector, "signature_base")),
		    "%s: %s", ap_text(vector, "id"), base);
		if (!ours(ap_text(vector, "algorithm")))
			continue;
		checked++;
		cr_expect(pkey_verify(
		    ap_key_of(arena, ap_text(key, "spki_pem"), false),
		    bytes_of(base), decoded(signature)));
		made = pkey_sign(arena,
		    ap_key_of(arena, rfc_private(key), true), bytes_of(base));
		cr_expect_str_eq(base64_text(arena, made), signature);
	}
	cr_expect_eq(json_count(vectors), RFC_REQUESTS);
	cr_expect_eq(checked, 2);
}

Test(activitypub, what_a_proxy_may_change_and_what_not)
{
	const struct json *file = ap_file(arena, "rfc9421-vectors.json");
	const struct json *list = json_member(file, "transforms");

	for (size_t i = 0; i < json_count(list); i++) {
		const struct json *vector = json_element(list, i);
		struct sig_message message = rfc_message(vector);
		const char *input = ap_text(vector, "signature_input");
		const char *signature = ap_text(vector, "signature");
		size_t label = strlen("transform=");
		const char *base =
		    sig_rfc9421_base(arena, &message, input + label);
		const struct json *key = rfc_key(file, vector);
		const char *text = arena_textn(arena, signature + label + 1,
		    strlen(signature) - label - 2);

		cr_assert_str_eq(base, ap_text(vector, "signature_base"));
		cr_expect_eq(pkey_verify(ap_key_of(arena,
					     ap_text(key, "spki_pem"), false),
				 bytes_of(base), decoded(text)),
		    !strcmp(ap_text(vector, "expect"), "accept"), "%s",
		    ap_text(vector, "id"));
	}
	cr_expect_eq(json_count(list), RFC_TRANSFORMS);
}

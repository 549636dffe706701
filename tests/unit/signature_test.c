#include <criterion/criterion.h>

#include "common/fediverse/signature.h"
#include "common/net/http_date.h"

enum { NOW = 1767225600 };

#define KEY_ID "https://a.example/ap/users/alice#main-key"
#define BODY "{\"type\":\"Create\"}"

static struct arena *arena;
static struct pkey *secret;
static struct pkey *open;

static void begin(void)
{
	const char *private_pem;
	const char *public_pem;
	struct err err = { 0 };

	arena = arena_new();
	pkey_fresh(arena, &private_pem, &public_pem);
	cr_assert(pkey_private(private_pem, &secret, &err));
	cr_assert(pkey_public(public_pem, &open, &err));
}

static void end(void)
{
	pkey_free(&secret);
	pkey_free(&open);
	arena_free(&arena);
}

TestSuite(signature, .init = begin, .fini = end, .timeout = 60);

enum { HEADERS_MAX = 8 };

/* A request of ours, signed, as the receiver has it. */
struct sent {
	struct sig_message message;
	struct http_header headers[HEADERS_MAX];
};

static void send_signed(
    struct sent *sent, enum sig_style style, const char *method)
{
	const struct sig_maker maker = { style, secret, KEY_ID, NOW };
	bool post = *method == 'P';
	struct http_header made[SIG_HEADERS_MAX];
	size_t count;

	sent->headers[0] = (struct http_header){ "Host", "B.example:443" };
	sent->headers[1] =
	    (struct http_header){ "Content-Type", "application/activity+json" };
	sent->message = (struct sig_message){
		.method = method,
		.scheme = "https",
		.target = "/inbox?x=1",
		.headers = sent->headers,
		.header_count = post ? 2 : 1,
		.body = { BODY, post ? strlen(BODY) : 0 },
	};
	count = sig_make(arena, &sent->message, &maker, made);
	cr_assert_leq(sent->message.header_count + count, HEADERS_MAX);
	for (size_t i = 0; i < count; i++)
		sent->headers[sent->message.header_count++] = made[i];
}

/* NULL: it holds. */
static const char *refusal(const struct sig_message *message, int64_t now)
{
	struct sig_claims claims;
	struct err err = { 0 };

	if (sig_read(arena, message, now, &claims, &err) &&
	    sig_check(&claims.items[0], open, &err)) {
		cr_expect_str_eq(claims.items[0].key_id, KEY_ID);
		return NULL;
	}
	return arena_text(arena, err.text);
}

static struct http_header *header(struct sent *sent, const char *name)
{
	size_t i = 0;

	while (i < sent->message.header_count &&
	    strcmp(sent->headers[i].name, name) != 0)
		i++;
	cr_assert_lt(i, sent->message.header_count, "no header %s", name);
	return &sent->headers[i];
}

static const enum sig_style styles[] = { SIG_CAVAGE, SIG_RFC9421 };

Test(signature, what_we_sign_verifies_in_both_styles)
{
	for (size_t i = 0; i < COUNT(styles); i++) {
		struct sent post;
		struct sent get;

		send_signed(&post, styles[i], "POST");
		send_signed(&get, styles[i], "GET");
		cr_expect_null(refusal(&post.message, NOW));
		cr_expect_null(refusal(&get.message, NOW));
		cr_expect_null(refusal(&post.message, NOW + SIG_WINDOW_S));
	}
}

Test(signature, another_body_target_method_host_or_time_does_not)
{
	for (size_t i = 0; i < COUNT(styles); i++) {
		struct sent sent;
		struct sig_message *m = &sent.message;

		send_signed(&sent, styles[i], "POST");
		cr_expect(refusal(m, NOW + SIG_WINDOW_S + 1));
		cr_expect(refusal(m, NOW - SIG_WINDOW_S - 1));
		m->body = (struct bytes){ "{}", 2 };
		cr_expect(refusal(m, NOW));
		m->body = (struct bytes){ BODY, strlen(BODY) };
		m->target = "/users/eve/inbox?x=1";
		cr_expect_str_eq(refusal(m, NOW), "signature mismatch");
		m->target = "/inbox?x=1";
		m->method = "PUT";
		cr_expect_str_eq(refusal(m, NOW), "signature mismatch");
		m->method = "POST";
		header(&sent, "Host")->value = "c.example";
		cr_expect_str_eq(refusal(m, NOW), "signature mismatch");
		header(&sent, "Host")->value = "B.example:443";
		cr_expect_null(refusal(m, NOW));
	}
}

/* What the deployed libraries insist on. */
Test(signature, the_drafts_header_names_algorithm_and_fields_in_order)
{
	struct sent sent;
	const char *text;

	send_signed(&sent, SIG_CAVAGE, "POST");
	text = header(&sent, "Signature")->value;
	cr_expect(strstr(text,
		      "keyId=\"" KEY_ID "\",algorithm=\"rsa-sha256\","
		      "headers=\"(request-target) host date digest "
		      "content-type\",signature=\"") == text,
	    "%s", text);
	cr_expect_eq(strncmp(header(&sent, "Digest")->value, "SHA-256=", 8), 0);
	cr_expect_str_eq(
	    header(&sent, "Date")->value, "Thu, 01 Jan 2026 00:00:00 GMT");
}

Test(signature, the_rfcs_header_covers_method_target_and_digest)
{
	struct sent sent;

	send_signed(&sent, SIG_RFC9421, "POST");
	cr_expect_str_eq(header(&sent, "Signature-Input")->value,
	    "sig1=(\"@method\" \"@target-uri\" \"content-digest\")"
	    ";created=1767225600;keyid=\"" KEY_ID "\"");
}

/* The digest fits, but nobody has signed it. */
Test(signature, a_body_that_is_not_covered_is_refused)
{
	struct sent sent;

	send_signed(&sent, SIG_RFC9421, "GET");
	sent.message.method = "POST";
	sent.message.body = (struct bytes){ BODY, strlen(BODY) };
	cr_expect_str_eq(
	    refusal(&sent.message, NOW), "content-digest not covered");
	send_signed(&sent, SIG_CAVAGE, "GET");
	sent.message.method = "POST";
	sent.message.body = (struct bytes){ BODY, strlen(BODY) };
	cr_expect_str_eq(refusal(&sent.message, NOW), "digest not covered");
}

/* Odd signature texts: refused, whatever they are. */
Test(signature, odd_headers_are_refused)
{
	static const char *const odd[] = { "", "x", "keyId", "keyId=", "=\"\"",
		"keyId=\"a\"", "keyId=\"a\",signature=\"\"",
		"keyId=\"a\",signature=\"?\"",
		"keyId=\"a\",,signature=\"YQ==\"",
		"keyId=\"a\",keyId=\"b\",signature=\"YQ==\"",
		"keyId=\"a\" signature=\"YQ==\"",
		"keyId=\"a\",created=99999999999999999999,signature=\"YQ==\"",
		"keyId=\"a\",created=-1,signature=\"YQ==\"",
		"keyId=\"a\",headers=\"\",signature=\"YQ==\"",
		"keyId=\"a\",headers=\"  \",signature=\"YQ==\"" };

	for (size_t i = 0; i < COUNT(odd); i++) {
		struct sent sent;

		send_signed(&sent, SIG_CAVAGE, "POST");
		header(&sent, "Signature")->value = odd[i];
		cr_expect(refusal(&sent.message, NOW), "%s", odd[i]);
	}
}

Test(signature, a_key_of_another_kind_is_refused)
{
	struct sig_claim claim = {
		.style = SIG_CAVAGE, .algorithm = "ed25519", .bases = { "x" }
	};
	struct err err = { 0 };

	cr_expect_not(sig_check(&claim, open, &err));
	cr_expect_str_eq(err.text, "algorithm does not fit key");
	claim.style = SIG_RFC9421;
	cr_expect_not(sig_check(&claim, open, &err));
	cr_expect_str_eq(err.text, "alg does not fit key");
	claim.algorithm = NULL;
	cr_expect_not(sig_check(&claim, open, &err));
	cr_expect_str_eq(err.text, "signature mismatch");
}

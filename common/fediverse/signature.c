#include "common/fediverse/signature.h"

#include "common/fediverse/sig_style.h"
#include "common/net/http_date.h"

bool sig_time_check(
    int64_t time_s, int64_t now_s, const char *what, struct err *err)
{
	if (time_s < now_s - SIG_WINDOW_S)
		return err_set(err, ERR_UNAUTHORIZED, "%s too old", what);
	if (time_s > now_s + SIG_WINDOW_S)
		return err_set(err, ERR_UNAUTHORIZED, "%s in the future", what);
	return true;
}

bool sig_read(struct arena *arena, const struct sig_message *message,
    int64_t now_s, struct sig_claims *claims, struct err *err)
{
	*claims = (struct sig_claims){ .count = 0 };
	if (sig_field(arena, message, "signature-input"))
		return sig_rfc9421_read(arena, message, now_s, claims, err);
	if (sig_field(arena, message, "signature"))
		return sig_cavage_read(arena, message, now_s, claims, err);
	return err_set(err, ERR_UNAUTHORIZED, "not signed");
}

bool sig_check(
    const struct sig_claim *claim, const struct pkey *key, struct err *err)
{
	enum pkey_type type = pkey_type(key);

	if (claim->style == SIG_CAVAGE && !sig_cavage_fits(claim, type))
		return err_set(
		    err, ERR_UNAUTHORIZED, "algorithm does not fit key");
	if (claim->style == SIG_RFC9421 && !sig_rfc9421_fits(claim, type))
		return err_set(err, ERR_UNAUTHORIZED, "alg does not fit key");
	for (size_t i = 0; i < COUNT(claim->bases) && claim->bases[i]; i++) {
		struct bytes base = { claim->bases[i],
			strlen(claim->bases[i]) };

		if (pkey_verify(key, base, claim->signature))
			return true;
	}
	return err_set(err, ERR_UNAUTHORIZED, "signature mismatch");
}

/* The message with what signing adds to it. */
static struct sig_message with(struct arena *arena,
    const struct sig_message *message, const struct http_header *headers,
    size_t count)
{
	struct sig_message whole = *message;
	struct http_header *all =
	    arena_array(arena, message->header_count + count, sizeof(*all));

	for (size_t i = 0; i < message->header_count; i++)
		all[i] = message->headers[i];
	for (size_t i = 0; i < count; i++)
		all[whole.header_count++] = headers[i];
	whole.headers = all;
	return whole;
}

static size_t sign_cavage(struct arena *arena,
    const struct sig_message *message, const struct sig_maker *maker,
    struct http_header headers[SIG_HEADERS_MAX])
{
	char *date = arena_alloc(arena, HTTP_DATE_MAX);
	struct sig_message whole;
	size_t count = 0;

	http_date_text(maker->now_s, date);
	headers[count++] = (struct http_header){ "Date", date };
	if (sig_has_body(message))
		headers[count++] = (struct http_header){ "Digest",
			sig_digest(arena, message->body) };
	whole = with(arena, message, headers, count);
	headers[count++] = (struct http_header){ "Signature",
		sig_cavage_make(arena, &whole, maker) };
	return count;
}

static size_t sign_rfc9421(struct arena *arena,
    const struct sig_message *message, const struct sig_maker *maker,
    struct http_header headers[SIG_HEADERS_MAX])
{
	struct sig_message whole;
	const char *input;
	const char *signature;
	size_t count = 0;

	if (sig_has_body(message))
		headers[count++] = (struct http_header){ "Content-Digest",
			sig_content_digest(arena, message->body) };
	whole = with(arena, message, headers, count);
	signature = sig_rfc9421_make(arena, &whole, maker, &input);
	headers[count++] = (struct http_header){ "Signature-Input", input };
	headers[count++] = (struct http_header){ "Signature", signature };
	return count;
}

size_t sig_make(struct arena *arena, const struct sig_message *message,
    const struct sig_maker *maker, struct http_header headers[SIG_HEADERS_MAX])
{
	if (maker->style == SIG_CAVAGE)
		return sign_cavage(arena, message, maker, headers);
	return sign_rfc9421(arena, message, maker, headers);
}

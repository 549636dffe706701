/*
 * signature -- HTTP message signatures of requests, made and checked.
 *
 * Two styles are in the field: draft-cavage-http-signatures-12 and RFC 9421.
 *
 * Making: at the moment of sending, each attempt anew. What is covered is
 * fixed: (request-target) host date digest content-type, respectively @method
 * @target-uri content-digest; without the body's fields for a GET. One
 * signature, RSA with SHA-256.
 *
 * Checking has two halves, for the key may have to be fetched in between.
 * sig_read looks at everything that needs no key: the form, what is covered,
 * the times, the digest of the body. sig_check looks at the algorithm, which
 * the key decides, and at the signature itself. Who called is known only when
 * both said yes. A malformed request is ERR_INVALID, anything else that does
 * not hold ERR_UNAUTHORIZED; the texts name the reason.
 *
 * Any thread; everything lives in the arena.
 */
#ifndef POSTRIDER_SIGNATURE_H
#define POSTRIDER_SIGNATURE_H

#include "common/crypto/pkey.h"
#include "common/fediverse/sig_message.h"

enum sig_style { SIG_CAVAGE, SIG_RFC9421 };

enum { SIG_WINDOW_S = 3600, SIG_CLAIMS_MAX = 4, SIG_HEADERS_MAX = 4 };

/* What one signature of a request says about itself. */
struct sig_claim {
	enum sig_style style;
	const char *label; /* NULL in the draft's style */
	const char *key_id;
	const char *algorithm; /* as it is named, or NULL */
	/* What may have been signed; the second, or NULL: the same without the
	 * query string, which several servers leave out. */
	const char *bases[2];
	struct bytes signature;
};

struct sig_claims {
	struct sig_claim items[SIG_CLAIMS_MAX];
	size_t count;
};

/* At least one claim that fits the rules, or the reason why the first does
 * not. now_s: Unix time. */
MUST_CHECK bool sig_read(struct arena *arena, const struct sig_message *message,
    int64_t now_s, struct sig_claims *claims, struct err *err);
MUST_CHECK bool sig_check(
    const struct sig_claim *claim, const struct pkey *key, struct err *err);

/* Who signs, how, and when (Unix time). */
struct sig_maker {
	enum sig_style style;
	const struct pkey *key;
	const char *key_id;
	int64_t now_s;
};

/* The headers that sign message, which has its Host and, with a body, its
 * Content-Type; to be sent beside those. Returns how many. */
size_t sig_make(struct arena *arena, const struct sig_message *message,
    const struct sig_maker *maker, struct http_header headers[SIG_HEADERS_MAX]);

#endif

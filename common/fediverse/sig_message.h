/*
 * sig_message -- a request as a signature sees it.
 *
 * target is the origin form as it stands on the request line, scheme is what
 * the receiving server knows about itself, headers are as sent. Nothing is
 * decoded or repaired: a signature covers octets. Any thread.
 */
#ifndef POSTRIDER_SIG_MESSAGE_H
#define POSTRIDER_SIG_MESSAGE_H

#include "common/base/err.h"
#include "common/net/http_parse.h"

struct sig_message {
	const char *method; /* upper case */
	const char *scheme; /* "https" */
	const char *target; /* "/users/bob/inbox?x=1" */
	const struct http_header *headers;
	size_t header_count;
	struct bytes body;
};

/* All values of a field (its name in lower case), trimmed, joined with ", " in
 * order; NULL: absent. */
const char *sig_field(
    struct arena *arena, const struct sig_message *message, const char *name);

/* Host in lower case without the scheme's default port; NULL: no Host. */
const char *sig_authority(
    struct arena *arena, const struct sig_message *message);

/* Does the request carry something that has to be covered? */
bool sig_has_body(const struct sig_message *message);

/* "SHA-256=..." and "sha-256=:...:", over the exact octets. */
const char *sig_digest(struct arena *arena, struct bytes body);
const char *sig_content_digest(struct arena *arena, struct bytes body);

/* Every digest whose algorithm we know has to fit, and one must be known. */
MUST_CHECK bool sig_digest_check(
    struct arena *arena, const struct sig_message *message, struct err *err);
MUST_CHECK bool sig_content_digest_check(
    struct arena *arena, const struct sig_message *message, struct err *err);

#endif

/*
 * inbox_visit -- a delivery as it stands before the inbox.
 *
 * All of it is read from the request alone, so that it may be read again once
 * a key has come. Worker threads.
 */
#ifndef POSTRIDER_INBOX_VISIT_H
#define POSTRIDER_INBOX_VISIT_H

#include "common/fediverse/inbound.h"
#include "common/fediverse/signature.h"
#include "frontd/fediverse.h"

struct visit {
	struct activity activity;
	struct actor recipient;
	bool is_shared; /* the inbox of all, without a recipient */
	struct sig_claims claims;
	struct remote_key sender; /* once verified */
	bool fetched;		  /* the answer to a question is known */
};

/* Whose inbox it is, and what is delivered; ERR_FORBIDDEN: by a server that
 * an operator blocked. */
MUST_CHECK bool visit_read(
    struct request *req, struct visit *visit, struct err *err);

/* The signatures that may prove it: well formed, made for us, just now, over
 * this body, with a key of the actor's own server. At least one. */
MUST_CHECK bool visit_claims(
    struct request *req, struct visit *visit, struct err *err);

enum key_verdict {
	KEY_FITS,
	KEY_DIFFERS, /* the signature was not made with it */
	KEY_OLD,     /* it fits, but may have been replaced */
	KEY_UNKNOWN
};

enum key_verdict key_judge(const struct visit *visit,
    const struct sig_claim *claim, const struct remote_key *key);

#endif

/*
 * sig_base -- the text a signature signs, in both styles.
 *
 * cavage: draft-cavage-http-signatures-12. rfc9421: RFC 9421. Both are built
 * from the message and from what the signature says about itself, alike by who
 * signs and by who verifies. NULL: a covered part is absent, or is none that a
 * request of ours may cover. Any thread.
 */
#ifndef POSTRIDER_SIG_BASE_H
#define POSTRIDER_SIG_BASE_H

#include "common/fediverse/sig_message.h"

/* What stands in a Signature header of the draft. */
struct sig_cavage {
	const char *key_id;
	const char *algorithm; /* or NULL */
	const char *covered;   /* names parted by one space */
	int64_t created_s;     /* 0: not given */
	int64_t expires_s;
};

/* with_query: the request target has its query, as the draft wants it. */
const char *sig_cavage_base(struct arena *arena,
    const struct sig_message *message, const struct sig_cavage *params,
    bool with_query);

/* params: the text after "label=" of Signature-Input, which is also the last
 * line of the base. */
const char *sig_rfc9421_base(
    struct arena *arena, const struct sig_message *message, const char *params);

#endif

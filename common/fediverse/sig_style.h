/*
 * sig_style -- what signature.c needs of each style; its own.
 */
#ifndef POSTRIDER_SIG_STYLE_H
#define POSTRIDER_SIG_STYLE_H

#include "common/fediverse/signature.h"

/* "what too old" or "what in the future". */
MUST_CHECK bool sig_time_check(
    int64_t time_s, int64_t now_s, const char *what, struct err *err);

MUST_CHECK bool sig_cavage_read(struct arena *arena,
    const struct sig_message *message, int64_t now_s, struct sig_claims *claims,
    struct err *err);
MUST_CHECK bool sig_rfc9421_read(struct arena *arena,
    const struct sig_message *message, int64_t now_s, struct sig_claims *claims,
    struct err *err);

/* May a key of this type have made it, by what it says of its algorithm? */
bool sig_cavage_fits(const struct sig_claim *claim, enum pkey_type type);
bool sig_rfc9421_fits(const struct sig_claim *claim, enum pkey_type type);

/* The value of Signature; message has all that it covers. */
const char *sig_cavage_make(struct arena *arena,
    const struct sig_message *message, const struct sig_maker *maker);
/* The value of Signature; *input becomes that of Signature-Input. */
const char *sig_rfc9421_make(struct arena *arena,
    const struct sig_message *message, const struct sig_maker *maker,
    const char **input);

#endif

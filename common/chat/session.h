/*
 * session -- who a bearer token belongs to.
 *
 * A session dies at its end, with its row, with a password change after it
 * began, or with the account. Worker threads.
 */
#ifndef POSTRIDER_SESSION_H
#define POSTRIDER_SESSION_H

#include "common/chat/user.h"

/* token lives in the arena. */
MUST_CHECK bool session_begin(struct tx *tx, int64_t user, int64_t lifetime_ms,
    const char **token, struct err *err);

/* authorization is the header or NULL; ERR_UNAUTHORIZED with the documented
 * texts. Fills user without password_hash. */
MUST_CHECK bool session_check(struct tx *tx, const char *authorization,
    struct user *user, struct err *err);

#endif

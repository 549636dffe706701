/*
 * account -- passwords, and the end of an account; handlers of user_routes.
 *
 * Worker threads; no transaction surrounds a password hash.
 */
#ifndef POSTRIDER_ACCOUNT_H
#define POSTRIDER_ACCOUNT_H

#include "frontd/request.h"

/* POST /api/users/@me/verify-password */
bool account_verify(struct request *req, struct err *err);
/* POST /api/users/@me/change-password */
bool account_change(struct request *req, struct err *err);
/* DELETE /api/users/@me */
bool account_delete(struct request *req, struct err *err);

/* Of a new password; ERR_INVALID. */
MUST_CHECK bool password_rules(const char *password, struct err *err);

#endif

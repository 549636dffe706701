#include "frontd/account.h"

#include "common/chat/session.h"
#include "common/crypto/password.h"
#include "common/federation/departure.h"
#include "frontd/frontd.h"

enum { READ_MAX = 1024 * 1024 };

bool password_rules(const char *password, struct err *err)
{
	if (json_units(password) < PASSWORD_MIN_UNITS)
		return err_set(
		    err, ERR_INVALID, "Password must be at least 8 characters");
	if (strlen(password) >= PASSWORD_MAX_BYTES)
		return err_set(err, ERR_INVALID, "Password is too long");
	return true;
}

/* The caller with his hash; the transaction ends before anything is hashed. */
static bool caller_read(struct request *req, struct user *user, struct err *err)
{
	return user_by_id(req->tx, req->user.id, user, err) &&
	    tx_commit(req->tx, err);
}

static bool matches(
    const struct user *user, const char *password, bool *match, struct err *err)
{
	*match = false;
	return strlen(password) >= PASSWORD_MAX_BYTES ||
	    password_check(user->password_hash, password, match, err);
}

/* ---- POST /api/users/@me/verify-password ---- */

bool account_verify(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const char *password = json_text(&in, "password", READ_MAX);
	struct user user;
	bool match;

	return json_done(&in) && caller_read(req, &user, err) &&
	    matches(&user, password, &match, err) &&
	    reply_json(
		req, 200, match ? "{\"valid\":true}" : "{\"valid\":false}");
}

/* ---- POST /api/users/@me/change-password ---- */

/* Who is at home elsewhere has proved himself there. */
static bool may_change(
    const struct user *user, const char *current, struct err *err)
{
	bool match;

	if (!current || !*current) {
		if (user->home_instance)
			return true;
		return err_set(err, ERR_INVALID, "currentPassword is required");
	}
	if (!matches(user, current, &match, err))
		return false;
	return match ||
	    err_set(err, ERR_FORBIDDEN, "Current password is incorrect");
}

static bool reply_token(struct request *req, const char *token)
{
	struct json_out out = { .buf = &req->reply };

	reply_json(req, 200, "");
	json_open(&out, NULL);
	json_put_text(&out, "token", token);
	json_close(&out);
	return true;
}

bool account_change(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const char *current = json_text_opt(&in, "currentPassword", READ_MAX);
	const char *fresh = json_text(&in, "newPassword", READ_MAX);
	const char *hash, *token;
	struct user user;

	return json_done(&in) && password_rules(fresh, err) &&
	    caller_read(req, &user, err) && may_change(&user, current, err) &&
	    password_hash(req->arena, fresh, &hash, err) &&
	    user_password_change(req->tx, &user, hash, err) &&
	    session_begin(
		req->tx, user.id, req->conf->token_lifetime, &token, err) &&
	    reply_token(req, token);
}

/* ---- DELETE /api/users/@me ---- */

static bool confirmed(const struct user *user, const char *name,
    const char *password, struct err *err)
{
	bool match;

	if (strcmp(name, user->username) != 0)
		return err_set(err, ERR_INVALID, "Username does not match");
	if (user->home_instance)
		return true;
	if (!password || !*password)
		return err_set(err, ERR_INVALID, "Password is required");
	if (!matches(user, password, &match, err))
		return false;
	return match || err_set(err, ERR_FORBIDDEN, "Password is incorrect");
}

bool account_delete(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const char *name = json_text(&in, "username", READ_MAX);
	const char *password = json_text_opt(&in, "password", READ_MAX);
	struct user user;

	return json_done(&in) && caller_read(req, &user, err) &&
	    confirmed(&user, name, password, err) &&
	    person_depart(req->tx, req->node, &user, DEPART_FULL, err) &&
	    reply_success(req);
}

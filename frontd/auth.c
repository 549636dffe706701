#include "common/crypto/password.h"
#include "common/chat/session.h"
#include "common/federation/settings.h"
#include "frontd/account.h"
#include "frontd/frontd.h"
#include "frontd/request.h"

enum {
	NAME_MAX_UNITS = 1000, /* of what is read; the rules are stricter */
	DISPLAY_NAME_MAX = 32,
	INSTANCE_MAX = 253,
	HOME_USER_ID_MAX = 256,
	PASSWORD_READ_MAX = 1024 * 1024
};

#define CLOSED_TEXT "Registration is currently closed"
#define NATIVE_NAME_TEXT \
	"Username must be 3 to 32 characters: a-z, 0-9 and underscore"

struct sign_up {
	struct registration reg;
	const char *password;
};

/* ---- small things ---- */

static const char *lower(struct arena *arena, const char *text)
{
	char *copy = text ? arena_text(arena, text) : NULL;

	for (char *p = copy; p && *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p + 'a' - 'A');
	return copy;
}

/* Never NULL. */
static const char *name_normal(struct arena *arena, const char *name)
{
	const char *normal = lower(arena, json_trim(arena, name));

	return normal ? normal : "";
}

static const char *null_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

/* The one spelling of a bare host; NULL when it is none. */
static const char *home_host(struct arena *arena, const char *text)
{
	int port;

	return strpbrk(text, ":/") ? NULL : instance_host(arena, text, &port);
}

/* AuthResponse; its user has been read back. */
static bool reply_signed_in(
    struct request *req, int status, const struct user *user, const char *token)
{
	struct json_out out = { .buf = &req->reply };
	struct buf person;

	reply_json(req, status, "");
	buf_init(&person, req->arena, 64 * 1024);
	user_write(&person, user, true);
	json_open(&out, NULL);
	json_put_text(&out, "token", token);
	json_put_raw(&out, "user", buf_bytes(&person));
	json_close(&out);
	return true;
}

/* ---- POST /api/auth/register ---- */

static bool name_check(const struct registration *reg, struct err *err)
{
	if (!reg->home_instance) {
		if (username_is_native(reg->username))
			return true;
		return err_set(err, ERR_INVALID, NATIVE_NAME_TEXT);
	}
	if (!username_is_replicated(reg->username))
		return err_set(err, ERR_INVALID,
		    "Username of a replicated account must be name@domain");
	return true;
}

/* Our own people have no row that calls us a foreign home. */
static bool not_from_here(
    const struct request *req, const struct registration *reg, struct err *err)
{
	if (!reg->home_instance ||
	    strcmp(reg->home_instance, req->node->origin.host) != 0)
		return true;
	return err_set(err, ERR_INVALID, "This is the home instance itself");
}

static bool sign_up_read(
    struct request *req, struct sign_up *up, struct err *err)
{
	struct arena *arena = req->arena;
	struct json_in in = json_read(arena, req->body, err);
	struct registration *reg = &up->reg;
	const char *home;

	reg->username = json_text(&in, "username", NAME_MAX_UNITS);
	up->password = json_text(&in, "password", PASSWORD_READ_MAX);
	reg->display_name = json_text_opt(&in, "displayName", DISPLAY_NAME_MAX);
	reg->avatar_color = json_text_opt(&in, "avatarColor", NAME_MAX_UNITS);
	home = null_if_empty(json_text_opt(&in, "homeInstance", INSTANCE_MAX));
	reg->home_user_id = json_text_opt(&in, "homeUserId", HOME_USER_ID_MAX);
	if (!json_done(&in))
		return false;
	reg->username = name_normal(arena, reg->username);
	reg->display_name = null_if_empty(json_trim(arena, reg->display_name));
	reg->avatar_color = avatar_color_pick(reg->avatar_color);
	reg->home_instance = home ? home_host(arena, home) : NULL;
	if (home && !reg->home_instance)
		return err_set(err, ERR_INVALID, "Invalid home instance");
	reg->home_user_id =
	    reg->home_instance ? null_if_empty(reg->home_user_id) : NULL;
	return name_check(reg, err) && not_from_here(req, reg, err) &&
	    password_rules(up->password, err);
}

static bool registration_open(struct tx *tx, struct err *err)
{
	struct settings settings;

	if (!settings_read(tx, &settings, err))
		return false;
	if (!settings.registration_open)
		return err_set(err, ERR_FORBIDDEN, CLOSED_TEXT);
	return true;
}

/* Before the hash is paid for; the insert decides. A stub may be upgraded. */
static bool name_is_free(
    struct tx *tx, const struct registration *reg, struct err *err)
{
	bool taken;

	if (reg->home_user_id)
		return true;
	if (!username_taken(tx, reg->username, &taken, err))
		return false;
	if (taken)
		return err_set(err, ERR_CONFLICT, "Username is already taken");
	return true;
}

static bool auth_register(struct request *req, struct err *err)
{
	struct sign_up up = { .password = NULL };
	struct registration *reg = &up.reg;
	struct user user;
	const char *token;
	bool created;

	return sign_up_read(req, &up, err) && registration_open(req->tx, err) &&
	    name_is_free(req->tx, reg, err) && tx_commit(req->tx, err) &&
	    password_hash(req->arena, up.password, &reg->password_hash, err) &&
	    user_register(req->tx, reg, &user, &created, err) &&
	    session_begin(
		req->tx, user.id, req->conf->token_lifetime, &token, err) &&
	    reply_signed_in(req, created ? 201 : 200, &user, token);
}

/* ---- POST /api/auth/login ---- */

static bool password_matches(
    const struct user *user, bool found, const char *password, struct err *err)
{
	bool match;

	if (!password_check(
		found ? user->password_hash : NULL, password, &match, err))
		return false;
	if (!found || !match)
		return err_set(
		    err, ERR_UNAUTHORIZED, "Invalid username or password");
	return true;
}

static bool sign_in(struct request *req, int64_t id, struct err *err)
{
	struct user user;
	const char *token;

	return user_status_set(req->tx, id, "online", err) &&
	    session_begin(
		req->tx, id, req->conf->token_lifetime, &token, err) &&
	    user_by_id(req->tx, id, &user, err) &&
	    reply_signed_in(req, 200, &user, token);
}

static bool auth_login(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const char *name = json_text(&in, "username", NAME_MAX_UNITS);
	const char *password = json_text(&in, "password", PASSWORD_READ_MAX);
	struct user user = { .id = 0 };
	bool found;

	if (!json_done(&in))
		return false;
	if (strlen(password) >= PASSWORD_MAX_BYTES)
		return err_set(
		    err, ERR_UNAUTHORIZED, "Invalid username or password");
	return user_by_name(req->tx, name_normal(req->arena, name), &user,
		   &found, err) &&
	    tx_commit(req->tx, err) &&
	    password_matches(&user, found, password, err) &&
	    sign_in(req, user.id, err);
}

/* ---- GET /api/auth/check-username ---- */

static bool reply_available(
    struct request *req, int status, bool available, const char *reason)
{
	struct json_out out = { .buf = &req->reply };

	reply_json(req, status, "");
	json_open(&out, NULL);
	json_put_bool(&out, "available", available);
	if (reason)
		json_put_text(&out, "reason", reason);
	json_close(&out);
	return true;
}

static bool auth_check_username(struct request *req, struct err *err)
{
	const char *name = name_normal(req->arena, query_text(req, "username"));
	struct settings settings;
	bool taken;

	if (!*name)
		return reply_available(req, 400, false, "Username is required");
	if (!settings_read(req->tx, &settings, err))
		return false;
	if (!settings.registration_open)
		return reply_available(req, 403, false, CLOSED_TEXT);
	if (!username_is_native(name))
		return reply_available(req, 200, false, NATIVE_NAME_TEXT);
	if (!username_taken(req->tx, name, &taken, err))
		return false;
	return reply_available(req, 200, !taken, NULL);
}

/* clang-format off */
const struct route auth_routes[] = {
	{ "POST", "/api/auth/register",       PASSWORD, 1024 * 1024, 10, 120000, auth_register },
	{ "POST", "/api/auth/login",          PASSWORD, 1024 * 1024, 15, 120000, auth_login },
	{ "GET",  "/api/auth/check-username", ANYONE,   1024,        30,  60000, auth_check_username },
	{ .method = NULL }
};
/* clang-format on */

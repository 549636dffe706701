#include <strings.h>

#include "common/chat/session.h"
#include "common/chat/session.sql.h"
#include "common/crypto/token.h"

struct found_session {
	struct bytes key_hash;
	struct user user;
};

#define COLUMN(kind, member) \
	{ \
		SHAPE_##kind, \
		    offsetof(struct found_session, user) + \
		    offsetof(struct user, member), \
		    #member, NULL, false, NULL \
	}

static const struct shape session_shape[] = {
	SHAPE(BYTES, struct found_session, key_hash, NULL),
	COLUMN(ID, id),
	COLUMN(TEXT, username),
	COLUMN(TEXT, display_name),
	COLUMN(TEXT, avatar),
	COLUMN(TEXT, banner),
	COLUMN(TEXT, accent_color),
	COLUMN(TEXT, avatar_color),
	COLUMN(TEXT, bio),
	COLUMN(TEXT, status),
	COLUMN(TEXT, custom_status),
	COLUMN(BOOL, is_admin),
	COLUMN(BOOL, discoverable),
	COLUMN(TIME, profile_updated_at),
	COLUMN(TIME, created_at),
	COLUMN(TEXT, home_instance),
	COLUMN(TEXT, home_user_id),
	COLUMN(RAW, replicated_instances),
	COLUMN(BOOL, show_activity),
	COLUMN(BOOL, is_deleted),
	SHAPE_END(struct found_session),
};

struct session_row {
	int64_t id;
};

static const struct shape session_id_shape[] = {
	SHAPE(ID, struct session_row, id, NULL),
	SHAPE_END(struct session_row),
};

bool session_begin(struct tx *tx, int64_t user, int64_t lifetime_ms,
    const char **token, struct err *err)
{
	struct session_row row;
	struct token_key key;

	token_fresh(&key);
	if (!sql_one(tx, &SQL_session_begin, session_id_shape, &row, err,
		v_id(user),
		v_bytes((struct bytes){ key.hash, sizeof(key.hash) }),
		v_span(lifetime_ms)))
		return false;
	*token = token_text(tx_arena(tx), row.id, &key);
	return true;
}

static bool is_bearer(const char *authorization)
{
	return authorization &&
	    strncasecmp(authorization, "Bearer ", strlen("Bearer ")) == 0;
}

static bool refuse(struct err *err)
{
	return err_set(err, ERR_UNAUTHORIZED, "Invalid or expired token");
}

bool session_check(struct tx *tx, const char *authorization, struct user *user,
    struct err *err)
{
	struct found_session session;
	struct token token;
	bool found;

	if (!is_bearer(authorization))
		return err_set(err, ERR_UNAUTHORIZED,
		    "Missing or invalid authorization header");
	if (!token_parse(authorization, &token))
		return refuse(err);
	if (!sql_opt(tx, &SQL_session_find, session_shape, &session, &found,
		err, v_id(token.session)))
		return false;
	if (!found || session.key_hash.len != TOKEN_HASH_BYTES ||
	    !token_hash_equal(session.key_hash.data, token.hash))
		return refuse(err);
	*user = session.user;
	return true;
}

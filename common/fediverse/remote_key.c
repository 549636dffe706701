#include "common/fediverse/remote_key.h"

#include "common/fediverse/remote_key.sql.h"

/* clang-format off */
static const struct shape remote_key_shape[] = {
	SHAPE(TEXT, struct remote_key, key_id, NULL),
	SHAPE(TEXT, struct remote_key, owner, NULL),
	SHAPE(TEXT, struct remote_key, pem, NULL),
	SHAPE(TEXT, struct remote_key, inbox, NULL),
	SHAPE(TEXT, struct remote_key, shared_inbox, NULL),
	SHAPE(TIME, struct remote_key, fetched_at, NULL),
	SHAPE(TIME, struct remote_key, refetched_at, NULL),
	SHAPE(TIME, struct remote_key, failed_until, NULL),
	SHAPE(BOOL, struct remote_key, failed_finally, NULL),
	SHAPE_END(struct remote_key),
};
/* clang-format on */

struct fetches {
	int64_t fetches;
	int64_t wait_s;
};

static const struct shape fetches_shape[] = {
	SHAPE(INT, struct fetches, fetches, NULL),
	SHAPE(INT, struct fetches, wait_s, NULL),
	SHAPE_END(struct fetches),
};

struct is_known {
	bool known;
};

static const struct shape is_known_shape[] = {
	SHAPE(BOOL, struct is_known, known, NULL),
	SHAPE_END(struct is_known),
};

bool remote_key_find(struct tx *tx, const char *key_id, struct remote_key *key,
    bool *found, struct err *err)
{
	return sql_opt(tx, &SQL_remote_key_find, remote_key_shape, key, found,
	    err, v_text(key_id));
}

bool remote_key_store(struct tx *tx, const char *key_id,
    const struct key_document *document, struct err *err)
{
	return sql_none(tx, &SQL_remote_key_store, err, v_text(key_id),
	    v_text(document->owner), v_text(document->pem),
	    v_text(document->inbox), v_text(document->shared_inbox));
}

bool remote_key_fail(
    struct tx *tx, const char *key_id, bool finally, struct err *err)
{
	return sql_none(tx, &SQL_remote_key_fail, err, v_text(key_id),
	    v_span(REMOTE_KEY_PAUSE_MS), v_bool(finally));
}

bool remote_key_doubt(struct tx *tx, const char *key_id, struct err *err)
{
	return sql_none(tx, &SQL_remote_key_doubt, err, v_text(key_id));
}

bool remote_actor_inboxes(
    struct tx *tx, const struct key_document *document, struct err *err)
{
	return sql_none(tx, &SQL_remote_actor_inboxes, err,
	    v_text(document->owner), v_text(document->inbox),
	    v_text(document->shared_inbox));
}

bool remote_key_count_fetch(struct tx *tx, const char *origin, struct err *err)
{
	struct fetches row;

	if (!sql_one(tx, &SQL_remote_key_count_fetch, fetches_shape, &row, err,
		v_text(origin)))
		return false;
	if (row.fetches <= REMOTE_KEY_FETCHES_MAX)
		return true;
	err_set(err, ERR_TOO_MANY, "too many keys of one server");
	err->retry_after_s = (int)row.wait_s;
	return false;
}

bool remote_actor_known(
    struct tx *tx, const char *actor, bool *known, struct err *err)
{
	struct is_known row;

	if (!sql_one(tx, &SQL_remote_actor_known, is_known_shape, &row, err,
		v_text(actor)))
		return false;
	*known = row.known;
	return true;
}

bool remote_actor_forget(struct tx *tx, const char *actor, struct err *err)
{
	return sql_none(tx, &SQL_remote_actor_forget, err, v_text(actor));
}

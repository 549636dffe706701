#include "common/fediverse/follower.h"

#include "common/fediverse/follower.sql.h"

struct total {
	int64_t total;
};

static const struct shape total_shape[] = {
	SHAPE(INT, struct total, total, NULL),
	SHAPE_END(struct total),
};

bool follower_add(
    struct tx *tx, const struct follower *follower, struct err *err)
{
	return sql_none(tx, &SQL_follower_add, err, v_text(follower->actor),
	    v_text(follower->follower), v_text(follower->inbox),
	    v_text(follower->shared_inbox), v_text(follower->follow_id),
	    v_bool(follower->accepted));
}

bool follower_remove(struct tx *tx, const char *follower, const char *follow_id,
    const char *actor, struct err *err)
{
	return sql_none(tx, &SQL_follower_remove, err, v_text(follower),
	    v_text(follow_id), v_text(actor));
}

bool followers_count(
    struct tx *tx, const char *actor, int64_t *total, struct err *err)
{
	struct total row;

	if (!sql_one(tx, &SQL_followers_count, total_shape, &row, err,
		v_text(actor)))
		return false;
	*total = row.total;
	return true;
}

bool following_answer(struct tx *tx, const char *followed,
    const char *follow_id, const char *actor, bool yes, struct err *err)
{
	return sql_none(tx, &SQL_following_answer, err, v_text(followed),
	    v_text(follow_id), v_text(actor), v_bool(yes));
}

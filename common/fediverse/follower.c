#include "common/fediverse/follower.h"

#include "common/fediverse/follower.sql.h"

struct total {
	int64_t total;
};

static const struct shape total_shape[] = {
	SHAPE(INT, struct total, total, NULL),
	SHAPE_END(struct total),
};

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

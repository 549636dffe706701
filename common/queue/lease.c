#include "common/queue/lease.h"

#include "common/queue/lease.sql.h"

static const struct shape kept_shape[] = {
	SHAPE(TEXT, struct lease_kept, token, NULL),
	SHAPE(BOOL, struct lease_kept, may_go_on, NULL),
	SHAPE_END(struct lease_kept),
};

struct reaped {
	int64_t freed;
};

static const struct shape reaped_shape[] = {
	SHAPE(INT, struct reaped, freed, NULL),
	SHAPE_END(struct reaped),
};

static const struct stmt *const renewals[] = {
	[LEASE_PEERS] = &SQL_lease_renew_peers,
	[LEASE_DOMAINS] = &SQL_lease_renew_domains,
};

static const struct stmt *const drops[] = {
	[LEASE_PEERS] = &SQL_lease_drop_peers,
	[LEASE_DOMAINS] = &SQL_lease_drop_domains,
};

bool lease_renew(struct tx *tx, enum lease_of of, const char *const *keys,
    const char *const *tokens, size_t count, struct rows *kept, struct err *err)
{
	return sql_many(tx, renewals[of], kept_shape, kept, err,
	    v_texts(keys, count), v_texts(tokens, count), v_span(LEASE_MS));
}

bool lease_drop(struct tx *tx, enum lease_of of, int64_t worker,
    const char *const *known, size_t count, struct err *err)
{
	return sql_none(
	    tx, drops[of], err, v_id(worker), v_texts(known, count));
}

bool lease_reap(struct tx *tx, int64_t *freed, struct err *err)
{
	struct reaped row;

	if (!sql_one(tx, &SQL_lease_reap, reaped_shape, &row, err))
		return false;
	*freed = row.freed;
	return true;
}

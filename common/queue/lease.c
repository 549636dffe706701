#include "common/queue/lease.h"

#include "common/queue/lease.sql.h"

static const struct shape kept_shape[] = {
	SHAPE(ID, struct lease_kept, id, NULL),
	SHAPE(BOOL, struct lease_kept, may_go_on, NULL),
	SHAPE_END(struct lease_kept),
};

static const struct shape kept_domain_shape[] = {
	SHAPE(TEXT, struct lease_kept_domain, domain, NULL),
	SHAPE_END(struct lease_kept_domain),
};

bool lease_renew_peers(struct tx *tx, const int64_t *peers,
    const char *const *tokens, size_t count, struct rows *kept, struct err *err)
{
	return sql_many(tx, &SQL_lease_renew_peers, kept_shape, kept, err,
	    v_ids(peers, count), v_texts(tokens, count), v_span(LEASE_MS));
}

bool lease_drop_peers(struct tx *tx, int64_t worker, struct err *err)
{
	return sql_none(tx, &SQL_lease_drop_peers, err, v_id(worker));
}

bool lease_drop_unknown(struct tx *tx, int64_t worker,
    const char *const *tokens, size_t count, struct err *err)
{
	return sql_none(tx, &SQL_lease_drop_unknown, err, v_id(worker),
	    v_texts(tokens, count));
}

bool lease_reap_peers(struct tx *tx, int64_t *freed, struct err *err)
{
	return sql_count(tx, &SQL_lease_reap_peers, freed, err);
}

bool lease_renew_domains(struct tx *tx, const char *const *domains,
    const char *const *tokens, size_t count, struct rows *kept, struct err *err)
{
	return sql_many(tx, &SQL_lease_renew_domains, kept_domain_shape, kept,
	    err, v_texts(domains, count), v_texts(tokens, count),
	    v_span(LEASE_MS));
}

bool lease_drop_domains(struct tx *tx, int64_t worker, struct err *err)
{
	return sql_none(tx, &SQL_lease_drop_domains, err, v_id(worker));
}

bool lease_reap_domains(struct tx *tx, int64_t *freed, struct err *err)
{
	return sql_count(tx, &SQL_lease_reap_domains, freed, err);
}

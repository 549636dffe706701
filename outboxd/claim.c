#include "outboxd/claim.h"

#include "common/queue/lease.h"
#include "outboxd/claim.sql.h"

/* A peer, with one of its entries or none. */
struct claimed {
	struct peer_lease lease;
	struct entry entry;
};

/* clang-format off */
static const struct shape claimed_shape[] = {
	SHAPE_IN(ID,    struct claimed, lease, peer),
	SHAPE_IN(TEXT,  struct claimed, lease, origin),
	SHAPE_IN(TEXT,  struct claimed, lease, token),
	SHAPE_IN(TEXT,  struct claimed, lease, status),
	SHAPE_IN(BYTES, struct claimed, lease, hmac_secret),
	SHAPE_IN(INT,   struct claimed, lease, presented_through),
	SHAPE_IN(INT,   struct claimed, lease, presented),
	SHAPE_IN(INT,   struct claimed, lease, empty_through),
	SHAPE_IN(INT,   struct claimed, lease, transport_failures),
	SHAPE_IN(INT,   struct claimed, lease, auth_failures),
	SHAPE_IN(INT,   struct claimed, lease, retry_batch_limit),
	SHAPE_IN(INT,   struct claimed, lease, remote_max_upload_size),
	SHAPE_IN(INT,   struct claimed, lease, accepted_ms),
	SHAPE_IN(INT,   struct claimed, lease, limit_per_minute),
	SHAPE_IN(INT,   struct claimed, lease, limited_ms),
	SHAPE_IN(TEXT,  struct claimed, lease, snapshot),
	ENTRY_SHAPE(struct claimed, entry),
	SHAPE_END(struct claimed),
};

static const struct shape busy_shape[] = {
	SHAPE(ID, struct claim_busy, id, NULL),
	SHAPE_END(struct claim_busy),
};
/* clang-format on */

/* ---- keeping one ---- */

/* An entry that outlives its claim. */
static struct entry entry_copy(struct arena *arena, const struct entry *entry)
{
	struct entry copy = *entry;

	copy.context_type = arena_text(arena, entry->context_type);
	copy.context_id = arena_text(arena, entry->context_id);
	copy.event_type = arena_text(arena, entry->event_type);
	copy.entity_id = arena_text(arena, entry->entity_id);
	copy.payload = arena_text(arena, entry->payload);
	if (entry->reason)
		copy.reason = arena_text(arena, entry->reason);
	return copy;
}

static void first_keep(struct arena *keep, struct peer_lease *lease)
{
	const struct entry *from = lease->first.items;
	struct entry *to;

	if (!lease->snapshot)
		return;
	to = arena_array(keep, lease->first.count, sizeof(*to));
	for (size_t i = 0; i < lease->first.count; i++)
		to[i] = entry_copy(keep, &from[i]);
	lease->first.items = to;
	lease->snapshot = arena_text(keep, lease->snapshot);
}

struct peer_lease claim_keep(struct arena *keep, const struct peer_lease *lease)
{
	struct peer_lease kept = *lease;

	kept.origin = arena_text(keep, lease->origin);
	kept.token = arena_text(keep, lease->token);
	kept.status = arena_text(keep, lease->status);
	kept.hmac_secret = (struct bytes){ 0 };
	first_keep(keep, &kept);
	return kept;
}

/* ---- claiming ---- */

/* One lease of rows of the same peer; returns how many they are. What is more
 * than CLAIM_FIRST may bring is read as a backlog. */
static size_t lease_gather(struct arena *arena, const struct claimed *rows,
    size_t count, struct peer_lease *lease)
{
	struct entry *entries =
	    arena_array(arena, CLAIM_FIRST, sizeof(*entries));
	size_t same = 0;

	*lease = rows->lease;
	for (; same < count && rows[same].lease.peer == lease->peer; same++)
		entries[same] = rows[same].entry;
	lease->first = (struct rows){ entries, same };
	if (same == CLAIM_FIRST || entries[0].id == 0)
		lease->snapshot = NULL;
	return same;
}

static struct rows leases_gather(
    struct arena *arena, const struct rows *claimed)
{
	const struct claimed *rows = claimed->items;
	struct peer_lease *leases =
	    arena_array(arena, claimed->count, sizeof(*leases));
	size_t count = 0;

	for (size_t i = 0; i < claimed->count; count++)
		i += lease_gather(
		    arena, &rows[i], claimed->count - i, &leases[count]);
	return (struct rows){ leases, count };
}

bool claim_peers(struct conn *conn, struct arena *arena,
    const struct claim_def *def, struct rows *leases, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct rows claimed;

	tx_lazy(tx);
	tx_closing(tx);
	if (!sql_many(tx, &SQL_claim_peers, claimed_shape, &claimed, err,
		v_int(def->room), v_span(LEASE_MS), v_id(def->worker),
		v_bool(def->wholly), v_int(CLAIM_FIRST),
		def->peers ? v_ids(def->peers, def->peer_count) : v_null()) ||
	    !tx_commit(tx, err))
		return false;
	*leases = leases_gather(arena, &claimed);
	return true;
}

bool claim_elsewhere(struct conn *conn, struct arena *arena,
    const struct claim_def *def, struct rows *busy, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

	tx_closing(tx);
	return sql_many(tx, &SQL_claim_elsewhere, busy_shape, busy, err,
		   v_ids(def->peers, def->peer_count), v_id(def->worker)) &&
	    tx_commit(tx, err);
}

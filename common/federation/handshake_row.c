#include "common/federation/handshake_row.h"

#include "common/base/clock.h"
#include "common/federation/handshake.sql.h"
#include "common/pg/notify.h"

struct fresh_id {
	int64_t id;
};

static const struct shape fresh_id_shape[] = {
	SHAPE(ID, struct fresh_id, id, NULL),
	SHAPE_END(struct fresh_id),
};

bool row_is_open(const struct peer *peer)
{
	return peer_status_is(peer, "pending") ||
	    peer_status_is(peer, "awaiting_approval");
}

bool row_find(struct tx *tx, const char *host, struct peer *peer, bool *found,
    struct err *err)
{
	return sql_none(tx, &SQL_handshake_lock, err, v_text(host)) &&
	    sql_opt(tx, &SQL_handshake_row, peer_shape, peer, found, err,
		v_text(host));
}

bool row_lock(
    struct tx *tx, int64_t id, struct peer *peer, bool *found, struct err *err)
{
	return sql_opt(
	    tx, &SQL_handshake_row_of, peer_shape, peer, found, err, v_id(id));
}

/* A stranger's row under another port of this host, with nothing going on. */
bool row_is_leftover(const struct peer *peer, const struct origin *origin)
{
	return row_is_open(peer) && !peer->initiated_at &&
	    peer->attempt_until <= clock_wall_ms() &&
	    strcmp(peer->origin, origin->text) != 0;
}

bool row_drop(struct tx *tx, int64_t id, bool *found, struct err *err)
{
	*found = false;
	return sql_none(tx, &SQL_handshake_drop, err, v_id(id));
}

/* A new row with the secret that we make for it, once. */
bool row_new(struct tx *tx, const struct node *node,
    const struct origin *origin, struct peer *peer, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct fresh_id fresh;

	if (!sql_one(tx, &SQL_handshake_id, fresh_id_shape, &fresh, err))
		return false;
	*peer = (struct peer){
		.id = fresh.id,
		.origin = origin->text,
		.host = origin->host,
		.status = "pending",
	};
	peer->hmac_secret =
	    peer_seal(arena, node, peer->id, secret_fresh(arena));
	return true;
}

bool row_save(struct tx *tx, const struct peer *peer, struct err *err)
{
	if (peer_status_is(peer, "active")) {
		log_info("peer.active", F("peer", v_text(peer->origin)));
		signal_outbox(tx);
	}
	return sql_none(tx, &SQL_handshake_save, err, v_id(peer->id),
	    v_text(peer->origin), v_text(peer->host), v_text(peer->status),
	    v_bytes(peer->hmac_secret), v_bytes(peer->pending_hmac_secret),
	    v_bytes(peer->offered_secret), v_time(peer->offered_at),
	    v_time(peer->initiated_at), v_time(peer->attempt_until),
	    v_text(peer->approval_token), v_time(peer->last_seen_at));
}

void row_activate(struct peer *peer)
{
	peer->status = "active";
	peer->attempt_until = 0;
	peer->approval_token = NULL;
	peer->last_seen_at = clock_wall_ms();
}

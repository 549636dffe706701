#include "common/federation/peer.h"

#include "common/base/clock.h"
#include "common/federation/peer.sql.h"
#include "common/federation/relay_figures.h"
#include "common/federation/rotation.h"
#include "common/pg/notify.h"

/* A busy peer's row is not written for every batch. */
enum { SEEN_EVERY_MS = 5000, SYNCS_PER_MINUTE = 600 };

const struct shape peer_shape[] = {
	SHAPE(ID, struct peer, id, NULL),
	SHAPE(TEXT, struct peer, origin, NULL),
	SHAPE(TEXT, struct peer, host, NULL),
	SHAPE(TEXT, struct peer, instance_name, NULL),
	SHAPE(TEXT, struct peer, status, NULL),
	SHAPE(TEXT, struct peer, instance_id, NULL),
	SHAPE(BYTES, struct peer, hmac_secret, NULL),
	SHAPE(BYTES, struct peer, pending_hmac_secret, NULL),
	SHAPE(BYTES, struct peer, offered_secret, NULL),
	SHAPE(TIME, struct peer, offered_at, NULL),
	SHAPE(TIME, struct peer, initiated_at, NULL),
	SHAPE(TIME, struct peer, attempt_until, NULL),
	SHAPE(TEXT, struct peer, approval_token, NULL),
	SHAPE(BOOL, struct peer, nonce_supported, NULL),
	SHAPE(TIME, struct peer, secret_rotation_at, NULL),
	SHAPE(TIME, struct peer, secret_rotated_at, NULL),
	SHAPE(TEXT, struct peer, rotation_by, NULL),
	SHAPE(TIME, struct peer, rotation_attempt_until, NULL),
	SHAPE(INT, struct peer, auto_rotate_interval_days, NULL),
	SHAPE(TIME, struct peer, last_synced_at, NULL),
	SHAPE(INT, struct peer, transport_failures, NULL),
	SHAPE(TIME, struct peer, last_failure_at, NULL),
	SHAPE(TIME, struct peer, last_seen_at, NULL),
	SHAPE(TIME, struct peer, created_at, NULL),
	SHAPE_END(struct peer),
};

struct counted {
	bool over_rate;
	bool fresh;
};

static const struct shape counted_shape[] = {
	SHAPE(BOOL, struct counted, over_rate, NULL),
	SHAPE(BOOL, struct counted, fresh, NULL),
	SHAPE_END(struct counted),
};

/* ---- finding ---- */

bool peer_by_origin(struct tx *tx, const char *origin, struct peer *peer,
    bool *found, struct err *err)
{
	return sql_opt(tx, &SQL_peer_by_origin, peer_shape, peer, found, err,
	    v_text(origin));
}

bool peer_by_id(struct tx *tx, int64_t id, struct peer *peer, struct err *err)
{
	return sql_one(tx, &SQL_peer_by_id, peer_shape, peer, err, v_id(id));
}

bool peer_list(struct tx *tx, struct rows *peers, struct err *err)
{
	return sql_many(tx, &SQL_peer_list, peer_shape, peers, err);
}

bool peer_status_is(const struct peer *peer, const char *status)
{
	return strcmp(peer->status, status) == 0;
}

bool peer_is_live(const struct peer *peer)
{
	return peer_status_is(peer, "active") ||
	    peer_status_is(peer, "unreachable");
}

/* ---- writing ---- */

/* When the grace was over, if it is; 0 when it is not. */
static int64_t rotated_ms(const struct peer *peer)
{
	int64_t end_ms = peer->secret_rotation_at + ROTATION_GRACE_MS;

	return peer->secret_rotation_at && end_ms <= clock_wall_ms() ? end_ms
								     : 0;
}

static int64_t last_rotated_ms(const struct peer *peer)
{
	int64_t end_ms = rotated_ms(peer);

	return end_ms ? end_ms : peer->secret_rotated_at;
}

void peer_write(struct buf *out, const struct peer *peer)
{
	struct json_out json = { .buf = out };

	json_open(&json, NULL);
	json_put_id(&json, "id", peer->id);
	json_put_text(&json, "origin", peer->origin);
	json_put_text(&json, "instanceName", peer->instance_name);
	json_put_text(&json, "status", peer->status);
	json_put_time(&json, "lastSeenAt", peer->last_seen_at);
	json_put_time(&json, "lastFailureAt", peer->last_failure_at);
	json_put_int(&json, "consecutiveFailures", peer->transport_failures);
	json_put_int(&json, "lastSyncedAt", peer->last_synced_at);
	json_put_time(&json, "createdAt", peer->created_at);
	json_put_bool(&json, "rotationInProgress",
	    peer->rotation_by && !rotated_ms(peer));
	json_put_time(&json, "secretRotatedAt", last_rotated_ms(peer));
	json_put_int(
	    &json, "autoRotateIntervalDays", peer->auto_rotate_interval_days);
	json_close(&json);
}

/* ---- secrets ---- */

static const char *context_of(struct arena *arena, int64_t peer)
{
	return arena_printf(arena, "peer:%" PRId64, peer);
}

const char *peer_open(struct arena *arena, const struct node *node,
    int64_t peer, struct bytes box)
{
	if (!box.len)
		return NULL;
	return secret_open(arena, node->key, context_of(arena, peer), box);
}

struct bytes peer_seal(struct arena *arena, const struct node *node,
    int64_t peer, const char *secret)
{
	return secret_seal(arena, node->key, context_of(arena, peer), secret);
}

const char *peer_secret(
    struct arena *arena, const struct node *node, const struct peer *peer)
{
	return peer_open(arena, node, peer->id,
	    peer->secret_rotation_at ? peer->pending_hmac_secret
				     : peer->hmac_secret);
}

const char *peer_other_secret(
    struct arena *arena, const struct node *node, const struct peer *peer)
{
	if (rotated_ms(peer))
		return NULL;
	return peer_open(arena, node, peer->id,
	    peer->secret_rotation_at ? peer->hmac_secret
				     : peer->pending_hmac_secret);
}

static bool verifies(
    const char *secret, const struct sign_headers *headers, struct bytes body)
{
	return secret &&
	    sign_verify(secret, headers->timestamp, headers->nonce, body,
		headers->signature);
}

static enum peer_secret_kind checked(
    enum signature_result result, enum peer_secret_kind kind)
{
	metric_add(&figure_signatures, result, 1);
	return kind;
}

enum peer_secret_kind peer_verify(struct arena *arena, const struct node *node,
    const struct peer *peer, const struct sign_headers *headers,
    struct bytes body)
{
	if (!sign_in_window(headers->timestamp_ms, clock_wall_ms()))
		return checked(SIGNATURE_LATE, PEER_NO_SECRET);
	if (verifies(peer_secret(arena, node, peer), headers, body))
		return checked(SIGNATURE_GOOD, PEER_SECRET);
	if (verifies(peer_other_secret(arena, node, peer), headers, body))
		return checked(SIGNATURE_PENDING, PEER_OTHER_SECRET);
	return checked(SIGNATURE_BAD, PEER_NO_SECRET);
}

/* ---- authentication ---- */

/* Anybody can write a wrong date; only the peer itself can sign it. */
static void log_skew(struct arena *arena, const struct node *node,
    const struct peer *peer, const struct sign_headers *headers,
    struct bytes body)
{
	int64_t skew_ms = headers->timestamp_ms - clock_wall_ms();

	if (verifies(peer_secret(arena, node, peer), headers, body))
		log_warn("peer.clock_skew", F("peer", v_text(peer->origin)),
		    F("seconds", v_int(skew_ms / 1000)));
	else
		log_debug(
		    "peer.bad_signature", F("peer", v_text(peer->origin)));
}

static bool find_served(struct tx *tx, const struct sign_headers *headers,
    struct peer *peer, struct err *err)
{
	bool found;

	if (!headers->origin)
		return err_set(err, ERR_UNAUTHORIZED,
		    "Missing or malformed federation headers");
	if (!peer_by_origin(tx, headers->origin, peer, &found, err))
		return false;
	if (!found || !(peer_is_live(peer) || peer_status_is(peer, "pending")))
		return err_set(err, ERR_FORBIDDEN, "Unknown or inactive peer");
	return true;
}

static bool find_verified(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct peer *peer,
    enum peer_secret_kind *used, struct err *err)
{
	if (!find_served(tx, headers, peer, err))
		return false;
	*used = peer_verify(tx_arena(tx), node, peer, headers, body);
	if (*used != PEER_NO_SECRET)
		return true;
	log_skew(tx_arena(tx), node, peer, headers, body);
	return err_set(err, ERR_UNAUTHORIZED, "Invalid signature");
}

static bool count_request(struct tx *tx, const struct peer *peer,
    const char *nonce, bool is_sync, bool *fresh, struct err *err)
{
	struct counted counted;

	if (!sql_one(tx, &SQL_peer_count, counted_shape, &counted, err,
		v_id(peer->id), v_text(peer->origin), v_text(nonce),
		v_bool(is_sync), v_int(SYNCS_PER_MINUTE)))
		return false;
	if (counted.over_rate)
		return err_set(err, ERR_TOO_MANY, "Rate limit exceeded");
	*fresh = counted.fresh;
	return true;
}

static bool nonce_fits(
    const struct peer *peer, const char *nonce, bool fresh, struct err *err)
{
	if (!nonce && peer->nonce_supported)
		return err_set(err, ERR_UNAUTHORIZED,
		    "Nonce required \xe2\x80\x94 peer previously supported "
		    "nonces");
	if (nonce && !fresh)
		return err_set(err, ERR_CONFLICT,
		    "Duplicate nonce \xe2\x80\x94 possible replay");
	return true;
}

/*
 * After crossing handshakes two secrets verify. The one the peer signs with
 * becomes ours; the other is forgotten only once the peer is seen to use what
 * we use, so that requests on their way in both directions stay good.
 */
static bool settle_crossing(struct tx *tx, struct peer *peer,
    enum peer_secret_kind used, struct err *err)
{
	struct bytes none = { NULL, 0 };
	struct bytes old = peer->hmac_secret;

	if (used == PEER_SECRET) {
		peer->pending_hmac_secret = none;
	} else {
		peer->hmac_secret = peer->pending_hmac_secret;
		peer->pending_hmac_secret = old;
	}
	return sql_none(tx, &SQL_peer_settle, err, v_id(peer->id),
	    v_bytes(peer->hmac_secret), v_bytes(peer->pending_hmac_secret),
	    v_bytes(old));
}

/* What the secret that it used says about the peer. */
static bool settle(struct tx *tx, struct peer *peer, enum peer_secret_kind used,
    struct err *err)
{
	if (!peer->pending_hmac_secret.len)
		return true;
	if (!peer->rotation_by)
		return settle_crossing(tx, peer, used, err);
	if (used == PEER_OTHER_SECRET && !peer->secret_rotation_at)
		return rotation_seen(tx, peer, err);
	return true;
}

static bool revive(struct tx *tx, struct peer *peer, struct err *err)
{
	if (peer_status_is(peer, "active"))
		return true;
	signal_outbox(tx);
	if (peer_status_is(peer, "unreachable"))
		return sql_none(tx, &SQL_peer_trial, err, v_id(peer->id));
	log_info("peer.active", F("peer", v_text(peer->origin)));
	peer->status = "active";
	return sql_none(tx, &SQL_peer_activate, err, v_id(peer->id));
}

/* A request as it came. */
struct signed_request {
	const struct sign_headers *headers;
	struct bytes body;
	bool is_sync;
};

static bool authenticate(struct tx *tx, const struct node *node,
    const struct signed_request *request, struct peer *peer, struct err *err)
{
	const char *nonce = request->headers->nonce;
	struct peer known;
	enum peer_secret_kind used;
	bool fresh;

	if (!find_verified(tx, node, request->headers, request->body, &known,
		&used, err) ||
	    !count_request(tx, &known, nonce, request->is_sync, &fresh, err) ||
	    !nonce_fits(&known, nonce, fresh, err) ||
	    !settle(tx, &known, used, err) || !revive(tx, &known, err))
		return false;
	*peer = known;
	return true;
}

bool peer_authenticate(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct peer *peer,
    struct err *err)
{
	const struct signed_request request = { headers, body, false };

	return authenticate(tx, node, &request, peer, err);
}

bool peer_authenticate_sync(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct peer *peer,
    struct err *err)
{
	const struct signed_request request = { headers, body, true };

	return authenticate(tx, node, &request, peer, err);
}

bool peer_authenticate_again(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct peer *peer,
    struct err *err)
{
	struct peer known;
	enum peer_secret_kind used;
	bool fresh;

	if (!find_verified(tx, node, headers, body, &known, &used, err) ||
	    !count_request(tx, &known, NULL, false, &fresh, err) ||
	    !settle(tx, &known, used, err) || !revive(tx, &known, err))
		return false;
	*peer = known;
	return true;
}

bool peer_seen(
    struct tx *tx, const struct peer *peer, bool had_nonce, struct err *err)
{
	if (clock_wall_ms() - peer->last_seen_at < SEEN_EVERY_MS &&
	    (!had_nonce || peer->nonce_supported))
		return true;
	return sql_none(
	    tx, &SQL_peer_seen, err, v_id(peer->id), v_bool(had_nonce));
}

#include "common/base/clock.h"
#include "common/federation/handshake.h"
#include "common/federation/handshake.sql.h"
#include "common/federation/handshake_row.h"

struct terms {
	const char *policy;
	bool allowed;
};

static const struct shape terms_shape[] = {
	SHAPE(TEXT, struct terms, policy, NULL),
	SHAPE(BOOL, struct terms, allowed, NULL),
	SHAPE_END(struct terms),
};

struct counters {
	int64_t to_host;
	int64_t overall;
};

static const struct shape counters_shape[] = {
	SHAPE(INT, struct counters, to_host, NULL),
	SHAPE(INT, struct counters, overall, NULL),
	SHAPE_END(struct counters),
};

/* ---- somebody came: what he can prove ---- */

static bool has_secret(struct arena *arena, const struct node *node,
    const struct peer *peer, const char *secret)
{
	return secret_equal(peer_secret(arena, node, peer), secret) ||
	    secret_equal(peer_other_secret(arena, node, peer), secret);
}

static bool is_signed_by(struct arena *arena, const struct node *node,
    const struct peer *peer, const struct handshake_offer *offer)
{
	return offer->headers &&
	    strcmp(offer->headers->origin, peer->origin) == 0 &&
	    peer_verify(arena, node, peer, offer->headers, offer->body) !=
	    PEER_NO_SECRET;
}

/* Only the true origin ever got the secret of a row that we initiated. */
static bool is_proved(struct arena *arena, const struct node *node,
    const struct peer *peer, const struct handshake_offer *offer)
{
	return row_is_open(peer) && peer->initiated_at &&
	    is_signed_by(arena, node, peer, offer);
}

static bool is_approved(
    const struct peer *peer, const struct handshake_offer *offer)
{
	return row_is_open(peer) && peer->initiated_at &&
	    peer->approval_token && offer->approval_token &&
	    secret_equal(peer->approval_token, offer->approval_token);
}

static bool take_row(struct tx *tx, struct peer *peer,
    const struct handshake_offer *offer, struct err *err)
{
	row_activate(peer);
	return row_save(tx, peer, err) &&
	    handshake_name_keep(tx, peer->id, &offer->name, err);
}

static bool take_secret(struct tx *tx, const struct node *node,
    struct peer *peer, const struct handshake_offer *offer, struct err *err)
{
	peer->hmac_secret =
	    peer_seal(tx_arena(tx), node, peer->id, offer->secret);
	peer->pending_hmac_secret = (struct bytes){ NULL, 0 };
	return take_row(tx, peer, offer, err);
}

/* A countering accept. The secret that does not stand still verifies. */
static bool take_proved(struct tx *tx, const struct node *node,
    struct peer *peer, const struct handshake_offer *offer,
    enum handshake_verdict *verdict, struct err *err)
{
	struct bytes theirs =
	    peer_seal(tx_arena(tx), node, peer->id, offer->secret);

	*verdict = VERDICT_ACCEPTED;
	if (offer->our_secret_stands) {
		*verdict = VERDICT_KEPT;
		peer->pending_hmac_secret = theirs;
	} else if (!secret_equal(
		       peer_secret(tx_arena(tx), node, peer), offer->secret)) {
		peer->pending_hmac_secret = peer->hmac_secret;
		peer->hmac_secret = theirs;
	}
	return take_row(tx, peer, offer, err);
}

/* ---- somebody came: what to do about it ---- */

static void remember_offer(struct tx *tx, const struct node *node,
    struct peer *peer, const char *secret)
{
	peer->offered_secret = peer_seal(tx_arena(tx), node, peer->id, secret);
	peer->offered_at = clock_wall_ms();
}

static bool queue(struct tx *tx, const struct node *node, struct peer *peer,
    const struct handshake_offer *offer, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char *known =
	    peer_open(arena, node, peer->id, peer->offered_secret);

	/* The token goes to whoever made the offer, and to nobody else. */
	if (!peer->approval_token || !secret_equal(known, offer->secret))
		peer->approval_token = secret_fresh(arena);
	remember_offer(tx, node, peer, offer->secret);
	peer->status = "awaiting_approval";
	log_info("handshake.queued", F("peer", v_text(peer->origin)));
	return row_save(tx, peer, err);
}

static bool counter_fits(
    struct tx *tx, const struct origin *origin, bool *fits, struct err *err)
{
	struct counters counters;

	if (!sql_one(tx, &SQL_handshake_counters, counters_shape, &counters,
		err, v_text(origin->host)))
		return false;
	*fits = counters.to_host < HANDSHAKE_PER_HOST_MAX &&
	    counters.overall < HANDSHAKE_OVERALL_MAX;
	return true;
}

static bool counter(struct tx *tx, const struct node *node, struct peer *peer,
    const struct handshake_offer *offer, struct ask *ask, struct err *err)
{
	int64_t until_ms = clock_wall_ms() + offer->counter_ms;

	remember_offer(tx, node, peer, offer->secret);
	if (!peer->initiated_at) {
		peer->status = "pending";
		peer->attempt_until = until_ms;
	}
	*ask = (struct ask){
		.kind = "counter",
		.peer_id = peer->id,
		.origin = peer->origin,
		.body = peer->offered_secret,
		.deadline = until_ms,
	};
	log_info("handshake.countering", F("peer", v_text(peer->origin)));
	return row_save(tx, peer, err) && ask_add(tx, ask, err);
}

static bool by_policy(struct tx *tx, const struct node *node, struct peer *peer,
    const struct handshake_offer *offer, struct ask *ask,
    enum handshake_verdict *verdict, struct err *err)
{
	struct terms terms;
	bool fits;

	if (!sql_one(tx, &SQL_handshake_terms, terms_shape, &terms, err,
		v_text(offer->origin.text)) ||
	    !counter_fits(tx, &offer->origin, &fits, err))
		return false;
	if (strcmp(terms.policy, "open") == 0) {
		*verdict = VERDICT_ACCEPTED;
		return take_secret(tx, node, peer, offer, err);
	}
	if (strcmp(terms.policy, "approve") == 0 && !terms.allowed &&
	    !peer->initiated_at) {
		*verdict = VERDICT_QUEUED;
		return queue(tx, node, peer, offer, err);
	}
	*verdict = fits ? VERDICT_COUNTER : VERDICT_TOO_MANY;
	return !fits || counter(tx, node, peer, offer, ask, err);
}

/* Yes to a repeated accept. A counter asks on behalf of whoever made the offer
 * that signed it: the yes is for him, so he must be the peer. */
static enum handshake_verdict by_live_row(struct arena *arena,
    const struct node *node, const struct peer *peer,
    const struct handshake_offer *offer)
{
	if (!has_secret(arena, node, peer, offer->secret))
		return VERDICT_EXISTS;
	if (offer->is_signed && !is_signed_by(arena, node, peer, offer))
		return VERDICT_REFUSED;
	return VERDICT_ACCEPTED;
}

/* Whatever needs neither a policy nor a callback; *settled says whether. */
static bool by_row(struct tx *tx, const struct node *node, struct peer *peer,
    const struct handshake_offer *offer, enum handshake_verdict *verdict,
    bool *settled, struct err *err)
{
	struct arena *arena = tx_arena(tx);

	*settled = true;
	if (peer_status_is(peer, "revoked")) {
		*verdict = VERDICT_REVOKED;
		return true;
	}
	if (strcmp(peer->origin, offer->origin.text) != 0) {
		*verdict = VERDICT_EXISTS;
		return true;
	}
	if (peer_is_live(peer)) {
		*verdict = by_live_row(arena, node, peer, offer);
		return true;
	}
	if (is_proved(arena, node, peer, offer))
		return take_proved(tx, node, peer, offer, verdict, err);
	if (!offer->is_signed && is_approved(peer, offer)) {
		*verdict = VERDICT_ACCEPTED;
		return take_secret(tx, node, peer, offer, err);
	}
	*settled = false;
	return true;
}

bool handshake_accept(struct tx *tx, const struct node *node,
    const struct handshake_offer *offer, struct peer *peer, struct ask *ask,
    enum handshake_verdict *verdict, struct err *err)
{
	bool found, settled = false;

	if (!row_find(tx, offer->origin.host, peer, &found, err))
		return false;
	if (found && row_is_leftover(peer, &offer->origin) &&
	    !row_drop(tx, peer->id, &found, err))
		return false;
	if (found && !by_row(tx, node, peer, offer, verdict, &settled, err))
		return false;
	if (settled)
		return true;
	/* Never counter a counter. */
	if (offer->is_signed) {
		*verdict = VERDICT_REFUSED;
		return true;
	}
	if (!found && !row_new(tx, node, &offer->origin, peer, err))
		return false;
	return by_policy(tx, node, peer, offer, ask, verdict, err);
}

/*
 * Its own callback was taken, or the secret that it offered is in use. That the
 * row is live says nothing: somebody else may have proved himself meanwhile.
 */
static bool is_earned(struct arena *arena, const struct node *node,
    const struct peer *peer, const struct ask *ask)
{
	const char *offered = peer_open(arena, node, peer->id, ask->body);

	if (!peer_is_live(peer))
		return false;
	return ask_answered(ask, 200) ||
	    (offered && has_secret(arena, node, peer, offered));
}

bool handshake_countered(struct tx *tx, const struct node *node, int64_t ask_id,
    bool *accepted, struct err *err)
{
	struct ask ask;
	struct peer peer;
	bool found;

	if (!ask_close(tx, ask_id, &ask, err) ||
	    !row_lock(tx, ask.peer_id, &peer, &found, err))
		return false;
	*accepted = found && is_earned(tx_arena(tx), node, &peer, &ask);
	if (*accepted)
		return true;
	log_info("handshake.unproved", F("peer", v_text(ask.origin)),
	    F("class", v_text(ask.outcome)), F("code", v_int(ask.status)));
	if (strcmp(ask.outcome, "unknown") == 0)
		return true;
	return sql_none(tx, &SQL_handshake_drop_countered, err, v_id(ask_id));
}

bool handshake_denied(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct peer peer;
	bool found;

	if (!peer_by_origin(tx, headers->origin, &peer, &found, err) ||
	    (found && !row_find(tx, peer.host, &peer, &found, err)))
		return false;
	if (!found || !row_is_open(&peer) || !peer.initiated_at)
		return err_set(err, ERR_FORBIDDEN, "Not peered");
	if (peer_verify(arena, node, &peer, headers, body) == PEER_NO_SECRET)
		return err_set(err, ERR_UNAUTHORIZED, "Invalid signature");
	log_warn("handshake.denied", F("peer", v_text(peer.origin)));
	return row_drop(tx, peer.id, &found, err);
}

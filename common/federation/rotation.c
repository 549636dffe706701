#include "common/federation/rotation.h"

#include "common/base/clock.h"
#include "common/federation/handshake_row.h"
#include "common/federation/rotation.sql.h"

enum { ASK_MS = 10000, SECRET_LEN = 64, TEXT_MAX = 200 };

static const char in_progress[] =
    "A secret rotation is already in progress \xe2\x80\x94 wait for it to "
    "complete";

static const struct shape rotating_shape[] = {
	SHAPE(ID, struct rotating, peer, NULL),
	SHAPE(TEXT, struct rotating, origin, NULL),
	SHAPE_END(struct rotating),
};

static bool is_begun_by(const struct peer *peer, const char *who)
{
	return peer->rotation_by && strcmp(peer->rotation_by, who) == 0;
}

/* We sent it, or were about to, and do not know whether they have it. */
static bool is_unknown(const struct peer *peer)
{
	return is_begun_by(peer, "us") && !peer->secret_rotation_at;
}

/* Neither a rotation nor a second secret left by crossing handshakes. */
static bool is_free(const struct peer *peer)
{
	return !peer->rotation_by && !peer->pending_hmac_secret.len;
}

/* The row is locked, and shows what the clock says. */
static bool row_now(
    struct tx *tx, int64_t id, struct peer *peer, bool *found, struct err *err)
{
	struct rows done;

	return rotation_tidy(tx, id, &done, err) &&
	    row_lock(tx, id, peer, found, err);
}

bool rotation_tidy(
    struct tx *tx, int64_t peer, struct rows *done, struct err *err)
{
	return sql_many(tx, &SQL_rotation_tidy, rotating_shape, done, err,
	    v_id(peer), v_span(ROTATION_GRACE_MS));
}

/* ---- we begin ---- */

static bool may_begin(const struct peer *peer, struct err *err)
{
	if (!peer_status_is(peer, "active"))
		return err_set(err, ERR_INVALID,
		    "Can only rotate secrets for active peers");
	if (peer->rotation_attempt_until > clock_wall_ms() ||
	    !(is_free(peer) || is_unknown(peer)))
		return err_set(err, ERR_CONFLICT, "%s", in_progress);
	return true;
}

bool rotation_begin(struct tx *tx, int64_t id, struct ask *ask, struct err *err)
{
	struct peer peer;
	bool found;

	if (!row_now(tx, id, &peer, &found, err))
		return false;
	if (!found)
		return err_set(err, ERR_ABSENT, "Peer not found");
	*ask = (struct ask){
		.kind = "rotate",
		.peer_id = id,
		.origin = peer.origin,
		.deadline = clock_wall_ms() + ASK_MS,
	};
	return may_begin(&peer, err) &&
	    sql_none(
		tx, &SQL_rotation_attempt, err, v_id(id), v_span(ASK_MS)) &&
	    ask_add(tx, ask, err);
}

bool rotation_begin_due(
    struct tx *tx, int64_t room, struct rows *asked, struct err *err)
{
	return sql_many(tx, &SQL_rotation_due, rotating_shape, asked, err,
	    v_int(room), v_span(ASK_MS));
}

static void end_with(
    struct rotation_result *result, int status, const char *text)
{
	result->status = status;
	result->text = text;
}

static const char *refusal_text(struct arena *arena, const struct ask *ask)
{
	const char *text = ask_answer_text(arena, ask, "error");

	if (text && *text && json_units(text) <= TEXT_MAX)
		return text;
	return arena_printf(arena,
	    "Remote instance refused the rotation (status %" PRId64 ")",
	    ask->status);
}

static void end_without(
    struct arena *arena, const struct ask *ask, struct rotation_result *result)
{
	if (strcmp(ask->outcome, "answered") == 0)
		end_with(result, 502, refusal_text(arena, ask));
	else if (ask->error && strcmp(ask->error, "timeout") == 0)
		end_with(result, 504,
		    "Remote instance did not respond within 10 seconds");
	else
		end_with(result, 502,
		    "Failed to reach remote instance: fetch failed");
}

bool rotation_end(
    struct tx *tx, int64_t id, struct rotation_result *result, struct err *err)
{
	struct ask ask;
	struct peer peer;
	bool found;

	if (!ask_close(tx, id, &ask, err) ||
	    !row_now(tx, ask.peer_id, &peer, &found, err))
		return false;
	log_info("rotation.ended", F("peer", v_text(ask.origin)),
	    F("class", v_text(ask.outcome)), F("code", v_int(ask.status)));
	if (found && is_begun_by(&peer, "us") && peer.secret_rotation_at)
		end_with(result, 200, NULL);
	else if (found && is_begun_by(&peer, "peer"))
		end_with(result, 409, in_progress);
	else
		end_without(tx_arena(tx), &ask, result);
	return strcmp(ask.outcome, "too_late") != 0 ||
	    sql_none(tx, &SQL_rotation_unsent, err, v_id(ask.peer_id),
		v_text(ask.error));
}

/* ---- the peer begins ---- */

static bool is_secret(const char *text)
{
	return text && strlen(text) == SECRET_LEN &&
	    strspn(text, "0123456789abcdef") == SECRET_LEN;
}

/* Both began: the smaller origin's stands. */
static bool may_take(const struct node *node, const struct peer *peer)
{
	return is_free(peer) ||
	    (is_unknown(peer) && strcmp(peer->origin, node->origin.text) < 0);
}

bool rotation_take(struct tx *tx, const struct node *node, int64_t id,
    const char *secret, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct peer peer;
	bool found;

	if (!is_secret(secret))
		return err_set(err, ERR_INVALID,
		    "newSecret must be a 64-character hex string");
	if (!row_now(tx, id, &peer, &found, err))
		return false;
	if (!found || !peer_is_live(&peer))
		return err_set(err, ERR_FORBIDDEN, "Unknown or inactive peer");
	/* A retry: the answer was lost. */
	if (secret_equal(peer_secret(arena, node, &peer), secret))
		return true;
	if (!may_take(node, &peer))
		return err_set(err, ERR_CONFLICT, "%s", in_progress);
	log_info("rotation.taken", F("peer", v_text(peer.origin)));
	return sql_none(tx, &SQL_rotation_take, err, v_id(id),
	    v_bytes(peer_seal(arena, node, id, secret)));
}

bool rotation_seen(struct tx *tx, const struct peer *peer, struct err *err)
{
	log_info("rotation.confirmed", F("peer", v_text(peer->origin)));
	return sql_none(tx, &SQL_rotation_has_it, err, v_id(peer->id),
	    v_bytes(peer->pending_hmac_secret));
}

/* ---- what outboxd sends ---- */

static bool plan_fresh(struct tx *tx, const struct node *node,
    const struct peer *peer, struct rotation_plan *plan, struct err *err)
{
	struct arena *arena = tx_arena(tx);

	plan->fresh = secret_fresh(arena);
	plan->sealed = peer_seal(arena, node, peer->id, plan->fresh);
	return sql_none(tx, &SQL_rotation_store, err, v_id(peer->id),
	    v_bytes(plan->sealed));
}

static bool plan_retry(struct tx *tx, const struct node *node,
    const struct peer *peer, struct rotation_plan *plan, struct err *err)
{
	plan->is_retry = true;
	plan->sealed = peer->pending_hmac_secret;
	plan->fresh = peer_other_secret(tx_arena(tx), node, peer);
	return plan->fresh ||
	    err_set(err, ERR_CONFLICT, "the new secret does not open");
}

bool rotation_plan(struct tx *tx, const struct node *node,
    const struct ask *ask, struct rotation_plan *plan, struct err *err)
{
	struct rotation_plan made = { 0 };
	struct peer peer;
	bool found;

	if (!row_now(tx, ask->peer_id, &peer, &found, err))
		return false;
	if (!found || !peer_is_live(&peer))
		return err_set(err, ERR_CONFLICT, "peer is %s",
		    found ? peer.status : "gone");
	if (!is_free(&peer) && !is_unknown(&peer))
		return err_set(err, ERR_CONFLICT, "%s", in_progress);
	made.signer = peer_secret(tx_arena(tx), node, &peer);
	if (!made.signer)
		return err_set(err, ERR_CONFLICT, "no secret of ours");
	if (is_free(&peer) ? !plan_fresh(tx, node, &peer, &made, err)
			   : !plan_retry(tx, node, &peer, &made, err))
		return false;
	*plan = made;
	return true;
}

bool rotation_settle(struct tx *tx, int64_t peer,
    const struct rotation_plan *plan, enum rotation_fate fate, const char *why,
    struct err *err)
{
	struct val id = v_id(peer);
	struct val sealed = v_bytes(plan->sealed);

	switch (fate) {
	case ROTATION_HAS_IT:
		return sql_none(tx, &SQL_rotation_has_it, err, id, sealed);
	case ROTATION_REFUSED:
		if (!sql_none(tx, &SQL_rotation_refused, err, id, sealed,
			v_text(why)))
			return false;
		break;
	case ROTATION_UNKNOWN:
		break;
	}
	return sql_none(
	    tx, &SQL_rotation_unknown, err, id, sealed, v_text(why));
}

#include "common/federation/handshake.h"

#include "common/base/clock.h"
#include "common/federation/handshake.sql.h"
#include "common/federation/handshake_row.h"
#include "common/pg/notify.h"

enum { TEXT_MAX = 200, BODY_MAX = 4096, NAME_MAX = 64 };

/* ---- answers ---- */

bool handshake_says(struct arena *arena, const char *answer, const char *member)
{
	const struct json *value = ask_answer(arena, answer);
	const struct json *flag = value ? json_member(value, member) : NULL;
	struct err err;
	struct json_in in;

	if (!flag || json_type(flag) != JSON_BOOL)
		return false;
	in = json_from(arena, value, &err);
	return json_bool(&in, member) && json_done(&in);
}

/* ---- who the other side says it is ---- */

static const char *short_text(const struct json *value, const char *member)
{
	const char *text = json_string(json_member(value, member));

	return text && *text && json_units(text) <= NAME_MAX ? text : NULL;
}

struct handshake_name handshake_name_read(const struct json *value)
{
	return (struct handshake_name){
		.name = short_text(value, "instanceName"),
		.id = short_text(value, "instanceId"),
	};
}

bool handshake_name_keep(struct tx *tx, int64_t peer,
    const struct handshake_name *name, struct err *err)
{
	if (!name->name && !name->id)
		return true;
	return sql_none(tx, &SQL_handshake_name_keep, err, v_id(peer),
	    v_text(name->name), v_text(name->id));
}

/* ---- we initiate ---- */

static bool begin_row(struct tx *tx, const struct node *node,
    const struct origin *origin, struct peer *peer, bool *found,
    struct err *err)
{
	if (*found &&
	    (peer_status_is(peer, "revoked") ||
		row_is_leftover(peer, origin)) &&
	    !row_drop(tx, peer->id, found, err))
		return false;
	if (!*found)
		return row_new(tx, node, origin, peer, err);
	if (strcmp(peer->origin, origin->text) != 0)
		return err_set(err, ERR_CONFLICT,
		    "This host is already known under another origin");
	return true;
}

static bool begin_ask(struct tx *tx, const struct node *node, struct peer *peer,
    struct ask *ask, struct err *err)
{
	int64_t now_ms = clock_wall_ms();
	struct arena *arena = tx_arena(tx);

	if (!peer->hmac_secret.len)
		peer->hmac_secret =
		    peer_seal(arena, node, peer->id, secret_fresh(arena));
	peer->status = "pending";
	peer->initiated_at = now_ms;
	peer->attempt_until = now_ms + HANDSHAKE_ATTEMPT_MS;
	*ask = (struct ask){
		.kind = "accept",
		.peer_id = peer->id,
		.origin = peer->origin,
		.deadline = now_ms + HANDSHAKE_ASK_MS,
	};
	log_info("handshake.begun", F("peer", v_text(peer->origin)));
	return row_save(tx, peer, err) && ask_add(tx, ask, err);
}

/* An attempt of theirs lasts as long as our callback, and one of ours bars
 * another until it is over. */
static bool begin_amid(struct tx *tx, const struct peer *peer, struct ask *ask,
    enum handshake_begun *begun, struct err *err)
{
	bool found;

	if (peer->initiated_at) {
		*begun = BEGUN_ALREADY;
		return true;
	}
	if (!sql_opt(tx, &SQL_handshake_callback, ask_shape, ask, &found, err,
		v_id(peer->id)))
		return false;
	*begun = found ? BEGUN_WAIT : BEGUN_ASK;
	if (found)
		log_info("handshake.awaited", F("peer", v_text(peer->origin)));
	return true;
}

bool handshake_begin(struct tx *tx, const struct node *node,
    const struct origin *origin, struct peer *peer, struct ask *ask,
    enum handshake_begun *begun, struct err *err)
{
	bool found;

	if (!row_find(tx, origin->host, peer, &found, err) ||
	    !begin_row(tx, node, origin, peer, &found, err))
		return false;
	if (found && peer_is_live(peer)) {
		*begun = BEGUN_KNOWN;
		return true;
	}
	*begun = BEGUN_ASK;
	if (found && peer_status_is(peer, "pending") &&
	    peer->attempt_until > clock_wall_ms() &&
	    !begin_amid(tx, peer, ask, begun, err))
		return false;
	return *begun != BEGUN_ASK || begin_ask(tx, node, peer, ask, err);
}

static bool end_with(
    struct handshake_result *result, int status, const char *text)
{
	result->status = status;
	result->text = text;
	return true;
}

static bool end_ok(
    struct tx *tx, struct handshake_result *result, struct err *err)
{
	return row_save(tx, &result->peer, err) &&
	    peer_by_id(tx, result->peer.id, &result->peer, err) &&
	    end_with(result, 200, NULL);
}

static bool end_queued(struct tx *tx, const struct ask *ask,
    struct handshake_result *result, struct err *err)
{
	const char *token = ask_answer_text(tx_arena(tx), ask, "approvalToken");

	result->peer.status = "awaiting_approval";
	result->peer.attempt_until = 0;
	result->peer.approval_token =
	    token && strlen(token) <= HANDSHAKE_TOKEN_MAX ? token : NULL;
	return end_ok(tx, result, err);
}

static const char *refusal_text(struct arena *arena, const struct ask *ask)
{
	const char *text = ask_answer_text(arena, ask, "error");

	if (text && *text && json_units(text) <= TEXT_MAX)
		return text;
	return arena_printf(arena,
	    "Remote instance refused the handshake (status %" PRId64 ")",
	    ask->status);
}

static bool end_dropped(struct tx *tx, struct handshake_result *result,
    int status, const char *text, struct err *err)
{
	int64_t id = result->peer.id;

	return sql_none(tx, &SQL_handshake_drop_refused, err, v_id(id)) &&
	    sql_none(tx, &SQL_handshake_pause_over, err, v_id(id)) &&
	    end_with(result, status, text);
}

static bool end_answered(struct tx *tx, const struct ask *ask,
    struct handshake_result *result, struct err *err)
{
	struct arena *arena = tx_arena(tx);

	if (ask->status == 200 &&
	    handshake_says(arena, ask->answer, "accepted")) {
		struct handshake_name name =
		    handshake_name_read(ask_answer(arena, ask->answer));

		row_activate(&result->peer);
		return handshake_name_keep(tx, result->peer.id, &name, err) &&
		    end_ok(tx, result, err);
	}
	if (ask->status == 202)
		return end_queued(tx, ask, result, err);
	return end_dropped(tx, result, 502, refusal_text(arena, ask), err);
}

/* Nothing was sent, or nobody knows: then row and secret stay for a retry. */
static bool end_unanswered(struct tx *tx, const struct ask *ask,
    struct handshake_result *result, struct err *err)
{
	bool late = ask->error && strcmp(ask->error, "timeout") == 0;
	int status = late ? 504 : 502;
	const char *text = late
	    ? "Remote instance did not respond within 10 seconds"
	    : "Failed to reach remote instance: fetch failed";

	if (strcmp(ask->outcome, "unknown") != 0)
		return end_dropped(tx, result, status, text, err);
	return sql_none(
		   tx, &SQL_handshake_pause_over, err, v_id(result->peer.id)) &&
	    end_with(result, status, text);
}

bool handshake_end(struct tx *tx, int64_t ask_id,
    struct handshake_result *result, struct err *err)
{
	struct ask ask;
	bool found;

	if (!ask_close(tx, ask_id, &ask, err) ||
	    !row_lock(tx, ask.peer_id, &result->peer, &found, err))
		return false;
	log_info("handshake.ended", F("peer", v_text(ask.origin)),
	    F("class", v_text(ask.outcome)), F("code", v_int(ask.status)));
	if (found && peer_is_live(&result->peer))
		return end_with(result, 200, NULL);
	if (!found || peer_status_is(&result->peer, "revoked"))
		return end_with(
		    result, 502, "The peering was ended before its answer");
	if (strcmp(ask.outcome, "answered") == 0)
		return end_answered(tx, &ask, result, err);
	return end_unanswered(tx, &ask, result, err);
}

/* ---- what outboxd sends ---- */

static struct bytes accept_body(struct arena *arena, const struct node *node,
    const char *secret, const char *token, bool keep)
{
	struct buf buf;
	struct json_out out = { .buf = &buf };

	buf_init(&buf, arena, BODY_MAX);
	json_open(&out, NULL);
	json_put_text(&out, "sourceOrigin", node->origin.text);
	json_put_text(&out, "hmacSecret", secret);
	if (token)
		json_put_text(&out, "approvalToken", token);
	if (keep)
		json_put_bool(&out, "yourSecretStands", true);
	json_close(&out);
	return buf_bytes(&buf);
}

static bool plan_counter(struct tx *tx, const struct node *node,
    const struct peer *peer, const struct ask *ask, const char *ours,
    struct handshake_plan *plan, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	bool theirs_stands = row_is_open(peer) && peer->initiated_at &&
	    strcmp(peer->origin, node->origin.text) < 0;

	plan->theirs = ask->body.len ? ask->body : peer->offered_secret;
	plan->signer = peer_open(arena, node, peer->id, plan->theirs);
	if (!plan->signer)
		return err_set(err, ERR_CONFLICT, "no offered secret");
	plan->relay_signer = ours;
	plan->kept_signer = theirs_stands ? plan->signer : NULL;
	plan->body = accept_body(arena, node, ours,
	    peer->initiated_at ? NULL : peer->approval_token, theirs_stands);
	return true;
}

bool handshake_plan(struct tx *tx, const struct node *node,
    const struct ask *ask, struct handshake_plan *plan, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct handshake_plan made = { 0 };
	/* Also when the row became live meanwhile: who offered may be them. */
	bool is_counter = strcmp(ask->kind, "counter") == 0;
	struct peer peer;
	const char *ours;

	if (!peer_by_id(tx, ask->peer_id, &peer, err))
		return false;
	if (!row_is_open(&peer) && !(is_counter && peer_is_live(&peer)))
		return err_set(err, ERR_CONFLICT, "peer is %s", peer.status);
	ours = peer_secret(arena, node, &peer);
	if (!ours)
		return err_set(err, ERR_CONFLICT, "no secret of ours");
	made.ours = peer.hmac_secret;
	if (!is_counter)
		made.body = accept_body(arena, node, ours, NULL, false);
	else if (!plan_counter(tx, node, &peer, ask, ours, &made, err))
		return false;
	*plan = made;
	return true;
}

bool handshake_kept(struct tx *tx, int64_t peer,
    const struct handshake_plan *plan, struct err *err)
{
	return sql_none(tx, &SQL_handshake_kept, err, v_id(peer),
	    v_bytes(plan->ours), v_bytes(plan->theirs));
}

bool handshake_proved(struct tx *tx, int64_t peer,
    const struct handshake_plan *plan, bool kept, struct err *err)
{
	struct bytes stands = kept ? plan->theirs : plan->ours;
	struct bytes other = kept ? plan->ours : (struct bytes){ NULL, 0 };

	signal_outbox(tx);
	return sql_none(tx, &SQL_handshake_proved, err, v_id(peer),
	    v_bytes(plan->ours), v_bytes(stands), v_bytes(other));
}

#include "outboxd/asks_run.h"

#include "common/base/clock.h"
#include "common/base/utf8.h"
#include "common/pg/notify.h"
#include "outboxd/asks_actor.h"
#include "outboxd/asks.sql.h"

/* Kept for writing the answer down before the one who waits gives up. */
enum { MARGIN_MS = 200, EMPTY_MAX = 1024 };

struct asks_run *asks_run_new(struct asks *asks, const struct ask *ask)
{
	struct arena *arena = arena_new();
	struct asks_run *run = ARENA_NEW(arena, struct asks_run);

	run->asks = asks;
	run->arena = arena;
	run->ask = *ask;
	run->ask.kind = arena_text(arena, ask->kind);
	run->ask.origin = arena_text(arena, ask->origin);
	run->ask.body.data = arena_textn(arena, ask->body.data, ask->body.len);
	return run;
}

void asks_run_free(struct asks_run **run)
{
	struct arena *arena = *run ? (*run)->arena : NULL;

	*run = NULL;
	arena_free(&arena);
}

static bool is_kind(const struct asks_run *run, const char *kind)
{
	return strcmp(run->ask.kind, kind) == 0;
}

/* For an actor's document. */
static bool is_look(const struct asks_run *run)
{
	return is_kind(run, "actor") || is_kind(run, "inbox");
}

static void end(struct asks_run *run, const char *outcome, const char *error)
{
	run->step = ASKS_DONE;
	run->ask.outcome = outcome;
	run->ask.error = error ? arena_text(run->arena, error) : NULL;
}

/* ---- what to send ---- */

static bool load_secret(struct asks_run *run, struct tx *tx,
    const struct node *node, struct err *err)
{
	struct peer peer;

	if (!peer_by_id(tx, run->ask.peer_id, &peer, err))
		return false;
	run->secret =
	    peer_is_live(&peer) ? peer_secret(run->arena, node, &peer) : NULL;
	return run->secret ||
	    err_set(err, ERR_CONFLICT, "peer is %s", peer.status);
}

static bool prepare(struct asks_run *run, struct tx *tx,
    const struct node *node, struct err *err)
{
	if (is_kind(run, "info"))
		return true;
	if (is_kind(run, "relay") || is_kind(run, "identity"))
		return load_secret(run, tx, node, err);
	if (is_kind(run, "rotate"))
		return rotation_plan(
			   tx, node, &run->ask, &run->rotation, err) &&
		    tx_commit(tx, err);
	if (is_look(run))
		return asks_actor_prepare(run, tx, node, err);
	return handshake_plan(tx, node, &run->ask, &run->plan, err);
}

/* An address that nobody may be asked at, however often. */
static bool is_barred(const struct asks_run *run, const struct err *err)
{
	return is_look(run) && err->code == ERR_INVALID;
}

void asks_run_prepare(
    struct asks_run *run, struct conn *conn, const struct node *node)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, run->arena);
	struct err err;

	run->step = ASKS_FIRST;
	if (run->ask.error) {
		end(run, "too_late", run->ask.error);
	} else if (!prepare(run, tx, node, &err)) {
		run->rotation = (struct rotation_plan){ 0 };
		end(run, is_barred(run, &err) ? "refused" : "too_late",
		    err.text);
	}
}

static void header_add(
    struct asks_run *run, const char *name, const char *value)
{
	assert(run->request.header_count < ASKS_HEADERS);
	run->headers[run->request.header_count++] =
	    (struct http_header){ name, value };
}

static void sign(
    struct asks_run *run, const struct node *node, const char *secret)
{
	const char *timestamp =
	    arena_printf(run->arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(run->arena);
	char signature[SIGN_TEXT_MAX];

	sign_make(secret, timestamp, nonce, run->request.body, signature);
	header_add(
	    run, "X-Federation-Signature", arena_text(run->arena, signature));
	header_add(run, "X-Federation-Origin", node->origin.text);
	header_add(run, "X-Federation-Timestamp", timestamp);
	header_add(run, "X-Federation-Nonce", nonce);
}

static struct bytes empty_relay(struct arena *arena, const struct node *node)
{
	struct buf buf;
	struct json_out out = { .buf = &buf };

	buf_init(&buf, arena, EMPTY_MAX);
	json_open(&out, NULL);
	json_put_int(&out, "version", 1);
	json_put_text(&out, "sourceInstance", node->origin.text);
	json_open_list(&out, "events");
	json_close_list(&out);
	json_close(&out);
	return buf_bytes(&buf);
}

/* Of the empty relay: what the question is about. */
static const char *relay_signer(const struct asks_run *run)
{
	if (is_kind(run, "rotate"))
		return run->rotation.fresh;
	return run->kept ? run->plan.kept_signer : run->plan.relay_signer;
}

static void fill_relay(struct asks_run *run, const struct node *node)
{
	const char *secret = run->secret;

	run->request.url = arena_printf(
	    run->arena, "%s/api/federation/relay", run->ask.origin);
	run->request.body = run->ask.body;
	if (run->step == ASKS_RELAY) {
		run->request.body = empty_relay(run->arena, node);
		secret = relay_signer(run);
	}
	sign(run, node, secret);
}

static void fill_identity(struct asks_run *run, const struct node *node)
{
	run->request.method = "DELETE";
	run->request.url = arena_printf(
	    run->arena, "%s/api/federation/identity", run->ask.origin);
	run->request.body = run->ask.body;
	sign(run, node, run->secret);
}

static void fill_accept(struct asks_run *run, const struct node *node)
{
	run->request.url = arena_printf(
	    run->arena, "%s/api/federation/peer/accept", run->ask.origin);
	run->request.body = run->plan.body;
	if (run->plan.signer)
		sign(run, node, run->plan.signer);
}

static void fill_rotate(struct asks_run *run, const struct node *node)
{
	struct buf buf;
	struct json_out out = { .buf = &buf };

	buf_init(&buf, run->arena, EMPTY_MAX);
	json_open(&out, NULL);
	json_put_text(&out, "newSecret", run->rotation.fresh);
	json_close(&out);
	run->request.url = arena_printf(
	    run->arena, "%s/api/federation/peer/rotate", run->ask.origin);
	run->request.body = buf_bytes(&buf);
	sign(run, node, run->rotation.signer);
}

/* Kinds that only look; false for all others. */
static bool fill_get(struct asks_run *run)
{
	if (is_kind(run, "info")) {
		run->request.url = arena_printf(
		    run->arena, "%s/api/instance/info", run->ask.origin);
	} else if (is_look(run)) {
		run->request.url = run->url;
		run->request.header_count = run->prepared;
	} else {
		return false;
	}
	run->request.method = "GET";
	return true;
}

bool asks_run_request(struct asks_run *run, const struct node *node)
{
	int64_t left_ms = run->ask.deadline - clock_wall_ms() - MARGIN_MS;

	if (left_ms <= 0) {
		end(run,
		    run->step == ASKS_FIRST && !run->hops && !run->knocked_twice
			? "too_late"
			: "unknown",
		    "timeout");
		return false;
	}
	run->request = (struct client_request){
		.method = "POST",
		.headers = run->headers,
		.timeout_ms = left_ms,
		.answer_max = ASKS_ANSWER_MAX,
		.once = !is_kind(run, "relay"),
	};
	if (fill_get(run))
		return true;
	header_add(run, "Content-Type", "application/json");
	if (run->step == ASKS_RELAY || is_kind(run, "relay"))
		fill_relay(run, node);
	else if (is_kind(run, "identity"))
		fill_identity(run, node);
	else if (is_kind(run, "rotate"))
		fill_rotate(run, node);
	else
		fill_accept(run, node);
	return true;
}

/* ---- what came back ---- */

/* Text that the database takes, or nothing. */
static const char *answer_text(struct arena *arena, struct bytes body)
{
	const unsigned char *text = body.data;

	for (size_t at = 0; at < body.len;) {
		size_t len =
		    text[at] ? utf8_sequence(text + at, body.len - at) : 0;

		if (!len)
			return NULL;
		at += len;
	}
	return arena_textn(arena, body.data, body.len);
}

static void end_without_answer(
    struct asks_run *run, const struct client_result *result)
{
	const char *error =
	    result->outcome == CLIENT_TIMEOUT ? "timeout" : result->text;

	if (result->outcome == CLIENT_REFUSED_ADDRESS)
		end(run, "refused", error);
	else if (!result->sent)
		end(run, "no_connection", error);
	else
		end(run, "unknown", error);
}

static bool is_relay_answer(struct arena *arena, const char *answer)
{
	const struct json *value;
	struct err err;

	return answer &&
	    json_parse(arena, (struct bytes){ answer, strlen(answer) }, &value,
		&err) &&
	    json_type(json_member(value, "accepted")) == JSON_ARRAY;
}

static bool is_taken(struct asks_run *run)
{
	return ask_answered(&run->ask, 200) &&
	    is_relay_answer(run->arena, run->ask.answer);
}

/* The first step was taken: from here on our secret may be theirs too. */
static void relay_answered(struct asks_run *run)
{
	run->proved = is_taken(run);
	if (!run->proved)
		run->ask.outcome = "unknown";
}

/* Answered 200 stands for a secret that was proved, and for nothing less. */
static void counter_answered(struct asks_run *run)
{
	if (!ask_answered(&run->ask, 200))
		return;
	if (!handshake_says(run->arena, run->ask.answer, "accepted")) {
		end(run, "refused", "200 without accepted");
		return;
	}
	run->name =
	    handshake_name_read(ask_answer(run->arena, run->ask.answer));
	run->kept = run->plan.kept_signer &&
	    handshake_says(run->arena, run->ask.answer, "yourSecretStands");
	run->step = ASKS_RELAY;
}

/* Somebody who has verified our signature said no. */
static bool is_refusal(int64_t status)
{
	return status / 100 == 4 && status != 401 && status != 403 &&
	    status != 408 && status != 425 && status != 429;
}

static enum rotation_fate fate_of(struct asks_run *run)
{
	const struct ask *ask = &run->ask;

	if (ask_answered(ask, 200) &&
	    handshake_says(run->arena, ask->answer, "accepted"))
		return ROTATION_HAS_IT;
	if (strcmp(ask->outcome, "unknown") == 0)
		return ROTATION_UNKNOWN;
	if (strcmp(ask->outcome, "answered") == 0 && ask->status / 100 != 4)
		return ROTATION_UNKNOWN;
	return ROTATION_REFUSED;
}

/* A refused retry leaves open whether an earlier attempt was taken: what the
 * new secret signs tells. */
static void rotate_answered(struct asks_run *run)
{
	run->fate = fate_of(run);
	if (run->fate != ROTATION_REFUSED || !run->rotation.is_retry ||
	    strcmp(run->ask.outcome, "answered") != 0)
		return;
	run->fate = ROTATION_UNKNOWN;
	run->refused = is_refusal(run->ask.status);
	run->step = ASKS_RELAY;
}

static void rotate_asked(struct asks_run *run)
{
	if (is_taken(run))
		run->fate = ROTATION_HAS_IT;
	else if (run->refused && ask_answered(&run->ask, 401))
		run->fate = ROTATION_REFUSED;
}

static void actor_answered(
    struct asks_run *run, const struct client_result *result)
{
	if (asks_actor_again(run, result))
		run->step = ASKS_AGAIN;
	else if (ask_answered(&run->ask, 200) &&
	    !asks_actor_is_document(result))
		end(run, "refused", "no activity document");
}

void asks_run_answered(struct asks_run *run, const struct client_result *result)
{
	enum asks_step step = run->step;
	bool is_rotation = is_kind(run, "rotate");

	if (result->outcome == CLIENT_ANSWERED) {
		run->ask.status = result->status;
		run->ask.answer = answer_text(run->arena, result->body);
		end(run, "answered", NULL);
	} else {
		end_without_answer(run, result);
	}
	if (is_rotation && step == ASKS_RELAY)
		rotate_asked(run);
	else if (is_rotation)
		rotate_answered(run);
	else if (step == ASKS_RELAY)
		relay_answered(run);
	else if (is_kind(run, "counter"))
		counter_answered(run);
	else if (is_look(run))
		actor_answered(run, result);
}

/* ---- writing down ---- */

bool asks_run_keep(struct asks_run *run, struct conn *conn, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, run->arena);

	return handshake_kept(tx, run->ask.peer_id, &run->plan, err) &&
	    tx_commit(tx, err);
}

static const char *why_not(const struct asks_run *run)
{
	return run->ask.error
	    ? run->ask.error
	    : arena_printf(run->arena, "answered %" PRId64, run->ask.status);
}

/* What the answer says of the peer's row. */
static bool settle(struct asks_run *run, struct tx *tx, struct err *err)
{
	int64_t peer = run->ask.peer_id;

	if (run->proved)
		return handshake_proved(tx, peer, &run->plan, run->kept, err) &&
		    handshake_name_keep(tx, peer, &run->name, err);
	if (run->rotation.fresh)
		return rotation_settle(
		    tx, peer, &run->rotation, run->fate, why_not(run), err);
	return !run->moved.inbox || !ask_answered(&run->ask, 200) ||
	    asks_actor_learn(run, tx, err);
}

bool asks_run_write(struct asks_run *run, struct conn *conn, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, run->arena);
	const struct ask *ask = &run->ask;

	if (!settle(run, tx, err))
		return false;
	signal_reply(tx, ask->id);
	return sql_none(tx, &SQL_asks_answer, err, v_id(ask->id),
		   v_text(ask->outcome), v_id(ask->status), v_text(ask->answer),
		   v_text(ask->error)) &&
	    tx_commit(tx, err);
}

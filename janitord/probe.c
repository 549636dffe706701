#include "janitord/probe.h"

#include "common/base/json.h"
#include "common/base/log.h"
#include "janitord/figures.h"
#include "janitord/janitord.h"
#include "janitord/probe.sql.h"

enum {
	TIMEOUT_MS = 10 * 1000,
	ANSWER_MAX = 256 * 1024,
	TRIAL_WITHIN_MS = 1000, /* what came back together is not tried so */
	EMPTY_EVERY_MS = 3600 * 1000,
	EMPTY_MAX = 1024
};

/* A peer from a row. */
struct silent {
	int64_t peer;
	const char *origin;
	int64_t probes;
};

static const struct shape claimed_shape[] = {
	SHAPE(ID, struct silent, peer, NULL),
	SHAPE(TEXT, struct silent, origin, NULL),
	SHAPE(INT, struct silent, probes, NULL),
	SHAPE_END(struct silent),
};

static const struct shape peer_shape[] = {
	SHAPE(ID, struct silent, peer, NULL),
	SHAPE(TEXT, struct silent, origin, NULL),
	SHAPE_END(struct silent),
};

struct prober {
	struct prober_def def;
	struct arena *arena;
	struct bytes empty; /* relay without events */
	size_t under_way;
	bool looking;
	bool stopped;
	/* of the look under way */
	struct arena *found;
	struct rows silent;
	int64_t room;
	bool failed;
	struct err err;
};

/* One question; it has an arena of its own. */
struct probe {
	struct arena *arena;
	struct prober *prober;
	int64_t peer;
	const char *origin;
	bool failed;
	bool trial;
	struct err err;
};

/* ---- a sign of life ---- */

static void probe_end(struct probe *probe)
{
	struct arena *arena = probe->arena;

	probe->prober->under_way--;
	arena_free(&arena);
}

static void answered_run(void *item, void *state)
{
	struct probe *probe = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);

	probe->failed =
	    !sql_opt(tx, &SQL_probe_answered, NULL, NULL, &probe->trial,
		&probe->err, v_id(probe->peer), v_span(TRIAL_WITHIN_MS)) ||
	    !tx_commit(tx, &probe->err);
}

static void answered_done(void *item)
{
	struct probe *probe = item;

	if (probe->failed)
		log_warn("probe.failed", F("peer", v_text(probe->origin)),
		    F("err", v_text(probe->err.text)));
	else if (probe->trial)
		log_info("probe.trial", F("peer", v_text(probe->origin)));
	probe_end(probe);
}

static enum probe_outcome outcome_of(const struct client_result *result)
{
	if (result->outcome != CLIENT_ANSWERED &&
	    result->outcome != CLIENT_TOO_LARGE)
		return PROBE_SILENT;
	return result->status / 100 == 2 ? PROBE_ANSWERED : PROBE_REFUSED;
}

static void on_answer(void *arg, const struct client_result *result)
{
	struct probe *probe = arg;
	enum probe_outcome outcome = outcome_of(result);

	if (result->outcome == CLIENT_ABORTED) {
		probe_end(probe);
		return;
	}
	metric_add(&figure_probes, outcome, 1);
	log_info("peer.probed", F("peer", v_text(probe->origin)),
	    F("code", v_id(result->status)), F("ms", v_int(result->took_ms)),
	    F("err", v_text(outcome == PROBE_SILENT ? result->text : NULL)));
	if (outcome != PROBE_ANSWERED ||
	    !work_submit(
		probe->prober->def.pool, answered_run, answered_done, probe))
		probe_end(probe);
}

static void ask(struct prober *prober, const struct silent *silent)
{
	struct arena *arena = arena_new();
	struct probe *probe = ARENA_NEW(arena, struct probe);
	const struct client_request request = {
		.method = "GET",
		.url =
		    arena_printf(arena, "%s/api/instance/info", silent->origin),
		.timeout_ms = TIMEOUT_MS,
		.answer_max = ANSWER_MAX,
	};

	probe->arena = arena;
	probe->prober = prober;
	probe->peer = silent->peer;
	probe->origin = arena_text(arena, silent->origin);
	prober->under_way++;
	client_send(prober->def.client, &request, on_answer, probe);
}

/* ---- whom to ask ---- */

static void told_active(const struct rows *rows)
{
	const struct silent *peers = rows->items;

	for (size_t i = 0; i < rows->count; i++)
		log_info("peer.state", F("peer", v_text(peers[i].origin)),
		    F("reason", v_text("took an empty relay")));
}

/* Both halves of it: ask, and look what came. */
static bool empty_relays(
    struct tx *tx, const struct prober *prober, struct err *err)
{
	struct rows asked;
	struct rows active;

	if (!sql_many(tx, &SQL_probe_believe, peer_shape, &active, err,
		v_bytes(prober->empty)) ||
	    !sql_many(tx, &SQL_probe_ask, peer_shape, &asked, err,
		v_bytes(prober->empty), v_span(TIMEOUT_MS),
		v_span(EMPTY_EVERY_MS), v_int(prober->room)) ||
	    !tx_commit(tx, err))
		return false;
	told_active(&active);
	return true;
}

/* The claim is committed before anybody is asked. Rows live in the
 * transaction's arena: what the loop needs is copied. */
static void look_run(void *item, void *state)
{
	struct prober *prober = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);
	struct rows rows = { 0 };
	struct silent *copies;

	prober->err = (struct err){ 0 };
	prober->failed = !sql_many(tx, &SQL_probe_claim, claimed_shape, &rows,
			     &prober->err, v_int(prober->room)) ||
	    !tx_commit(tx, &prober->err) ||
	    !empty_relays(tx, prober, &prober->err);
	copies = arena_array(prober->found, rows.count, sizeof(*copies));
	for (size_t i = 0; i < rows.count; i++) {
		copies[i] = ((const struct silent *)rows.items)[i];
		copies[i].origin = arena_text(prober->found, copies[i].origin);
	}
	prober->silent = (struct rows){ copies, rows.count };
}

static void look_done(void *item)
{
	struct prober *prober = item;
	const struct silent *silent = prober->silent.items;

	prober->looking = false;
	if (prober->failed)
		log_warn("probe.failed", F("err", v_text(prober->err.text)));
	for (size_t i = 0; i < prober->silent.count && !prober->stopped; i++)
		ask(prober, &silent[i]);
}

void prober_look(struct prober *prober)
{
	prober->room = janitord_conf.probes_max - (int64_t)prober->under_way;
	if (prober->looking || prober->room <= 0)
		return;
	arena_reset(prober->found);
	prober->looking =
	    work_submit(prober->def.pool, look_run, look_done, prober);
}

void prober_stop(struct prober *prober)
{
	prober->stopped = true;
}

/* ---- life ---- */

static struct bytes empty_relay(struct arena *arena, const char *origin)
{
	struct buf buf;
	struct json_out out = { .buf = &buf };

	buf_init(&buf, arena, EMPTY_MAX);
	json_open(&out, NULL);
	json_put_int(&out, "version", 1);
	json_put_text(&out, "sourceInstance", origin);
	json_open_list(&out, "events");
	json_close_list(&out);
	json_close(&out);
	return buf_bytes(&buf);
}

struct prober *prober_new(const struct prober_def *def)
{
	struct arena *arena = arena_new();
	struct prober *prober = ARENA_NEW(arena, struct prober);

	prober->arena = arena;
	prober->def = *def;
	prober->found = arena_new();
	prober->empty = empty_relay(arena, def->origin);
	return prober;
}

void prober_free(struct prober **prober)
{
	struct arena *arena = *prober ? (*prober)->arena : NULL;

	if (!*prober)
		return;
	arena_free(&(*prober)->found);
	*prober = NULL;
	arena_free(&arena);
}

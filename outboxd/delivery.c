#include "outboxd/delivery.h"

#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/figures.h"
#include "outboxd/settle.h"

enum {
	RELEASE_AGAIN_MS = 500,
	LINGER_MS = 1000,
	/* Somebody who wrote just now may go on. */
	WARM_MS = 1000,
	WARM_MAX = 256, /* such peers; others are given back */
	/* Then others get a chance at a peer that always has something. */
	WARM_LONGEST_MS = 60 * 1000,
	/* When it is time to read from the start again, what is in hand may
	 * still leave, but not longer than that. */
	IN_HAND_MS = 4000,
	/* While others wait for room a peer gives way after so long. */
	TURN_MS = 5000,
	/* A larger answer is read by a worker. */
	ANSWER_READ_MAX = 64 * 1024
};

/* The round closes here: what an answer or a step brings decides what is
 * next. */
static void go_on(struct delivery *d);

/* ---- what was read ---- */

static void load_recycle(struct delivery *d, struct load *load)
{
	if (d->spare) {
		load_free(&load);
		return;
	}
	load_reset(load);
	d->spare = load;
}

static void loads_drop(struct delivery *d, struct load **loads)
{
	while (*loads) {
		struct load *load = *loads;

		*loads = load->next;
		load_recycle(d, load);
	}
}

/* What was not sent yet is read again. */
static void loads_stop(struct delivery *d)
{
	const struct load *load;

	LL_FOREACH(d->loads, load)
	if (load->sent < load->count)
		d->drain->cursor = 0;
	d->old = d->loads;
	d->loads = NULL;
}

/* The first that has something to send. */
static struct load *load_next(struct delivery *d)
{
	while (d->loads && d->loads->sent == d->loads->count) {
		struct load *sent = d->loads;

		d->loads = sent->next;
		load_recycle(d, sent);
	}
	return d->loads;
}

/* ---- the end of a delivery ---- */

static void delivery_delete(void *arg)
{
	struct delivery *d = arg;

	loads_drop(d, &d->loads);
	loads_drop(d, &d->old);
	load_free(&d->spare);
	owed_done(&d->owed);
	arena_free(&d->answers);
	loop_timer_free(&d->again);
	drain_free(&d->drain);
	free(d);
}

static void finish(struct delivery *d)
{
	struct deliverer *all = d->all;

	loop_timer_disarm(d->again);
	DL_DELETE(all->deliveries, d);
	all->held--;
	metric_set(&figure_leases, 0, (double)all->held);
	if (all->crowded)
		deliverer_look(all);
	else if (d->hinted)
		deliver_wake_peer(all, d->peer);
	loop_after_turn(all->def.loop, delivery_delete, d);
}

static void release_run(void *item, void *state)
{
	struct delivery *d = item;
	struct outboxd_worker *worker = state;

	d->err = (struct err){ 0 };
	d->failed = !drain_release(worker->conn, d->drain, &d->err);
}

static void release_done(void *item)
{
	struct delivery *d = item;

	if (d->failed && !d->lost && clock_steady_ms() < d->lease_ends)
		loop_timer_arm(d->again, RELEASE_AGAIN_MS);
	else
		finish(d);
}

void delivery_release(struct delivery *d)
{
	d->releasing = true;
	if (d->lost)
		finish(d);
	else if (!work_submit(d->all->def.pool, release_run, release_done, d))
		loop_timer_arm(d->again, RELEASE_AGAIN_MS);
}

/* ---- what may be done ---- */

static bool turn_is_over(const struct delivery *d)
{
	return d->all->crowded && clock_steady_ms() - d->busy_since >= TURN_MS;
}

static bool is_leaving(const struct delivery *d)
{
	return d->leave || d->all->draining || turn_is_over(d);
}

/* Nothing more of what was read may leave. */
static bool must_step(const struct delivery *d)
{
	return d->refused || d->fresh_secret || is_leaving(d) ||
	    clock_steady_ms() >= d->scan_ends + IN_HAND_MS;
}

/* A worker is at work on what is ours. */
static bool is_busy(const struct delivery *d)
{
	return d->stepping || d->sealing > 0;
}

static bool may_read_ahead(const struct delivery *d)
{
	return d->more && !d->stepping && !d->loads->next &&
	    clock_steady_ms() < d->scan_ends;
}

static void wait(struct delivery *d, int64_t ms)
{
	d->waiting = true;
	loop_timer_arm(d->again, ms);
}

/* ---- signing what was read ahead ---- */

struct seal {
	struct delivery *delivery;
	struct load *load;
};

static void seal_run(void *item, void *state UNUSED)
{
	struct seal *seal = item;

	drain_seal(seal->delivery->drain, seal->load);
}

static void seal_done(void *item)
{
	struct seal *seal = item;

	seal->delivery->sealing--;
	go_on(seal->delivery);
}

static void seal_begin(struct delivery *d, struct load *load)
{
	struct seal *seal = ARENA_NEW(load->arena, struct seal);

	*seal = (struct seal){ d, load };
	if (work_submit(d->all->def.pool, seal_run, seal_done, seal))
		d->sealing++;
	else
		d->broken = true;
}

static void load_take(struct delivery *d)
{
	struct load *load = d->drain->load;

	if (!load || load->count == 0)
		return;
	d->drain->load = NULL;
	LL_APPEND(d->loads, load);
	if (!load->sealed)
		seal_begin(d, load);
}

/* ---- steps ---- */

static void step_run(void *item, void *state)
{
	struct delivery *d = item;
	struct outboxd_worker *worker = state;

	d->err = (struct err){ 0 };
	d->failed = !drain_step(worker->conn, d->drain, &d->err);
}

/* Nothing is known to be booked. */
static void step_failed(struct delivery *d)
{
	log_warn("outbox.interrupted",
	    F("peer", v_text(d->drain->lease.origin)),
	    F("err", v_text(d->err.text)));
	d->broken = true;
	if (d->call)
		client_abort(d->call);
	else
		go_on(d);
}

/* Kept though nothing may go: for what is behind a refusal, or warm. */
static void linger(struct delivery *d)
{
	bool warm = d->drain->warm;
	int64_t left = d->warm_ends - clock_steady_ms();

	if (is_leaving(d) || d->fresh_secret ||
	    (warm && (d->hinted || d->all->crowded || left <= 0))) {
		/* So we were told during the step. */
		go_on(d);
		return;
	}
	d->warm = warm;
	d->all->warm += warm;
	wait(d, warm ? left : LINGER_MS);
}

static void step_done(void *item)
{
	struct delivery *d = item;
	struct drain *drain = d->drain;
	bool empty;

	d->stepping = false;
	loads_drop(d, &d->old);
	if (d->failed) {
		step_failed(d);
		return;
	}
	d->more = drain->more;
	empty = drain->load->count == 0;
	load_take(d);
	if (!drain->ahead)
		d->scan_ends = drain->scanned_at + drain->rescan_ms;
	if (!drain->ahead && empty && !drain->again && !drain->linger)
		finish(d);
	else if (drain->linger && !d->lost)
		linger(d);
	else
		go_on(d);
}

/* What was accepted changes hands, and the memory for more comes back. */
static void hand_over(struct delivery *d, struct drain *drain)
{
	struct owed spent = drain->owed;

	drain->owed = d->owed;
	drain->status = d->status;
	drain->max_upload_size = d->max_upload_size;
	drain->took_ms = d->took_ms;
	spent.count = 0;
	d->owed = spent;
	if (drain->load)
		return;
	drain->load = d->spare;
	d->spare = NULL;
}

static bool may_stay_warm(const struct delivery *d)
{
	int64_t now = clock_steady_ms();

	return !d->all->crowded && d->all->warm < WARM_MAX &&
	    now < d->warm_ends && now - d->since < WARM_LONGEST_MS;
}

static void step(struct delivery *d, bool ahead)
{
	struct deliverer *all = d->all;
	struct drain *drain = d->drain;

	hand_over(d, drain);
	drain->ahead = ahead;
	drain->brief = false;
	drain->out = NULL;
	if (!ahead) {
		loads_stop(d);
		d->hinted = false;
		drain->out = d->refused;
		drain->answer = d->answer;
		drain->limit_per_minute = pace_ceiling(all->pace, d->peer);
		d->refused = NULL;
		drain->leaving = is_leaving(d);
		drain->may_linger = !all->crowded;
		drain->warm = may_stay_warm(d);
		drain->fresh_secret |= d->fresh_secret;
		drain->uncounted = silence_is_ours(&all->silence);
		d->fresh_secret = false;
	}
	d->stepping = true;
	if (work_submit(all->def.pool, step_run, step_done, d))
		return;
	d->stepping = false;
	d->broken = true;
	if (!ahead)
		delivery_release(d);
}

/* ---- sending ---- */

/* Is it the peer, or is it us? Whoever answers clears everybody's doubt. */
static void note_outcome(struct delivery *d, const struct client_result *result)
{
	if (result->outcome == CLIENT_ANSWERED)
		silence_heard(&d->all->silence);
	else if (result->outcome != CLIENT_ABORTED)
		silence_of(&d->all->silence, d->drain->lease.origin);
}

static void note_answer(struct delivery *d, const struct client_result *result)
{
	struct parcel *out = d->out;

	arena_reset(d->answers);
	d->answer = answer_keep(d->answers, result);
	if (result->body.len <= ANSWER_READ_MAX)
		answer_read(&d->answer, &out->batch, d->answers);
	if (!answer_takes_all(&d->answer, &out->batch)) {
		d->refused = out;
		return;
	}
	d->status = d->answer.status;
	d->max_upload_size = d->answer.max_upload_size;
	d->took_ms = d->answer.took_ms;
	d->warm_ends = clock_steady_ms() + WARM_MS;
	owed_add(&d->owed, &out->batch);
	settle_log(&d->drain->lease, out, &d->answer);
}

static void on_answer(void *arg, const struct client_result *result)
{
	struct delivery *d = arg;

	d->call = NULL;
	note_outcome(d, result);
	if (result->status == 429)
		pace_refused(d->all->pace, d->peer, clock_steady_ms());
	if (!d->lost && !d->broken)
		note_answer(d, result);
	d->out = NULL;
	go_on(d);
}

static void post(struct delivery *d, struct parcel *parcel)
{
	const struct client_request request = {
		.method = "POST",
		.url = d->drain->url,
		.headers = parcel->headers,
		.header_count = LOAD_HEADERS,
		.body = parcel->body,
		.timeout_ms = outboxd_conf.answer_timeout,
		.answer_max = ANSWER_BYTES_MAX,
	};

	d->loads->sent++;
	d->out = parcel;
	if (d->loads->fresh)
		settle_sending(parcel);
	pace_sent(d->all->pace, d->peer, clock_steady_ms());
	d->call = client_send(d->all->def.client, &request, on_answer, d);
}

static void send_from(struct delivery *d, struct load *load)
{
	int64_t wait_ms =
	    pace_wait_ms(d->all->pace, d->peer, clock_steady_ms());

	if (wait_ms > 0)
		wait(d, wait_ms);
	else
		post(d, &load->parcels[load->sent]);
}

/* False when nothing is in hand. */
static bool send_next(struct delivery *d)
{
	struct load *load = load_next(d);

	if (!load)
		return false;
	if (load->sealed)
		send_from(d, load);
	if ((d->call || !load->sealed) && may_read_ahead(d))
		step(d, true);
	return true;
}

static void go_on(struct delivery *d)
{
	if (d->call || d->releasing)
		return;
	if (clock_steady_ms() >= d->lease_ends)
		delivery_lose(d);
	if (d->lost || d->broken) {
		if (!is_busy(d))
			delivery_release(d);
		return;
	}
	if (!must_step(d) && send_next(d))
		return;
	if (!is_busy(d))
		step(d, false);
}

static void on_again(void *arg)
{
	struct delivery *d = arg;

	d->waiting = false;
	if (d->warm) {
		d->warm = false;
		d->all->warm--;
		d->busy_since = clock_steady_ms();
	}
	if (d->releasing)
		delivery_release(d);
	else
		go_on(d);
}

/* ---- the public face ---- */

struct delivery *delivery_new(
    struct deliverer *all, struct drain *drain, int64_t began)
{
	struct delivery *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->all = all;
	d->drain = drain;
	d->answers = arena_new();
	d->peer = drain->lease.peer;
	d->token = drain->lease.token;
	d->since = began;
	d->busy_since = began;
	d->lease_ends = began + LEASE_MS;
	pace_know(all->pace, d->peer, drain->lease.limit_per_minute,
	    began - drain->lease.limited_ms);
	d->again = loop_timer_new(all->def.loop, on_again, d);
	DL_APPEND(all->deliveries, d);
	all->held++;
	metric_set(&figure_leases, 0, (double)all->held);
	return d;
}

void delivery_go(struct delivery *d)
{
	step(d, false);
}

void delivery_go_on(struct delivery *d, const struct err *failed)
{
	d->failed = failed != NULL;
	if (failed)
		d->err = *failed;
	step_done(d);
}

void delivery_nudge(struct delivery *d)
{
	if (!d->waiting)
		return;
	loop_timer_disarm(d->again);
	on_again(d);
}

void delivery_hint(struct delivery *d)
{
	d->hinted = true;
	if (d->warm)
		loop_timer_arm(d->again, 0);
}

void delivery_lose(struct delivery *d)
{
	if (d->lost)
		return;
	d->lost = true;
	if (d->call) {
		metric_add(&figure_leases_lost, 0, 1);
		log_warn(
		    "lease.lost", F("peer", v_text(d->drain->lease.origin)));
		client_abort(d->call);
	} else {
		delivery_nudge(d);
	}
}

void delivery_abort(struct delivery *d)
{
	if (d->call)
		client_abort(d->call);
}

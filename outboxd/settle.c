#include "outboxd/settle.h"

#include "common/base/clock.h"
#include "common/queue/backoff.h"
#include "common/queue/dead.h"
#include "common/queue/lease.h"
#include "outboxd/figures.h"
#include "outboxd/reason.h"
#include "outboxd/settle.sql.h"

/* Entries that leave for the dead, and those that are set aside. */
struct refusals {
	struct arena *arena;
	int64_t *dead;
	const char **whys;
	const char **words;
	size_t dead_count;
	int64_t *aside;
	const char **aside_words;
	int64_t *again_at;
	size_t aside_count;
};

struct held {
	int64_t peer;
};

static const struct shape held_shape[] = {
	SHAPE(ID, struct held, peer, NULL),
	SHAPE_END(struct held),
};

static size_t entries_in(const struct batch *batch)
{
	size_t count = 0;

	for (size_t i = 0; i < batch->count; i++) {
		count++;
		for (struct link *l = batch->items[i].folded; l; l = l->next)
			count++;
	}
	return count;
}

static void refusals_init(
    struct refusals *refusals, struct arena *arena, size_t most)
{
	*refusals = (struct refusals){ .arena = arena };
	refusals->dead = arena_array(arena, most, sizeof(int64_t));
	refusals->whys = arena_array(arena, most, sizeof(char *));
	refusals->words = arena_array(arena, most, sizeof(char *));
	refusals->aside = arena_array(arena, most, sizeof(int64_t));
	refusals->aside_words = arena_array(arena, most, sizeof(char *));
	refusals->again_at = arena_array(arena, most, sizeof(int64_t));
}

static void acknowledge(
    struct settled *settled, const struct item *item, enum removal_why why)
{
	size_t before = settled->count;

	settled->ids[settled->count++] = item->first->id;
	for (struct link *l = item->folded; l; l = l->next)
		settled->ids[settled->count++] = l->entry->id;
	metric_add(&figure_removed, why, (int64_t)(settled->count - before));
}

static void bury_entry(struct refusals *refusals, const struct entry *entry,
    const char *why, const char *word)
{
	size_t place = refusals->dead_count++;

	refusals->dead[place] = entry->id;
	refusals->whys[place] = why;
	refusals->words[place] = word;
	metric_add(&figure_removed, REMOVED_DEAD, 1);
}

/* Everything that was folded into it dies with it. */
static void bury(struct drain *drain, struct refusals *refusals,
    const struct item *item, const char *why, const char *word)
{
	bury_entry(refusals, item->first, why, word);
	for (struct link *l = item->folded; l; l = l->next)
		bury_entry(refusals, l->entry, why, word);
	metric_add(&figure_attempts, ATTEMPT_REFUSED_FOR_GOOD, 1);
	log_warn("outbox.dead", F("peer", v_text(drain->lease.origin)),
	    F("entry", v_id(item->first->id)), F("reason", v_text(word)),
	    F("class", v_text(why)),
	    F("attempt", v_int(item->first->refusals + 1)));
}

static void set_aside(
    struct drain *drain, struct refusals *refusals, const struct item *item)
{
	int64_t count = item->first->refusals + 1;
	size_t place = refusals->aside_count;

	if (count >= BACKOFF_REFUSALS_MAX) {
		bury(drain, refusals, item, "refused too often", item->refused);
		return;
	}
	refusals->aside[place] = item->first->id;
	refusals->aside_words[place] = item->refused;
	refusals->again_at[place] =
	    clock_wall_ms() + backoff_spread_ms(backoff_refusal_s(count));
	refusals->aside_count++;
	blocks_add(drain->blocks, item->first, item->refused);
	metric_add(&figure_attempts, ATTEMPT_REFUSED_FOR_NOW, 1);
	log_info("outbox.refused", F("peer", v_text(drain->lease.origin)),
	    F("entry", v_id(item->first->id)),
	    F("reason", v_text(item->refused)), F("attempt", v_int(count)));
}

/* The peer has it. Of a create that was there already only the create goes:
 * what was folded into it is still unknown to the peer. */
static void there_already(
    struct drain *drain, struct settled *settled, const struct item *item)
{
	metric_add(&figure_attempts, ATTEMPT_REFUSED_FOR_GOOD, 1);
	if (strcmp(item->event_type, "create") != 0 || !item->folded) {
		acknowledge(settled, item, REMOVED_REFUSED);
		return;
	}
	settled->ids[settled->count++] = item->first->id;
	metric_add(&figure_removed, REMOVED_REFUSED, 1);
	drain->cursor = 0;
}

static void item_settle(struct drain *drain, struct settled *settled,
    struct refusals *refusals, const struct item *item)
{
	/* What waited behind a retry is free again, or knows it must wait. */
	if (item->retry)
		drain->cursor = 0;
	if (item->accepted) {
		acknowledge(settled, item, REMOVED_ACCEPTED);
		return;
	}
	switch (reason_class(item->event_type, item->refused)) {
	case REASON_THERE:
		there_already(drain, settled, item);
		return;
	case REASON_NEVER:
		bury(drain, refusals, item, "refused for good", item->refused);
		return;
	case REASON_CONVERSATION:
	case REASON_MESSAGE:
	case REASON_ENTITY:
		set_aside(drain, refusals, item);
		return;
	}
}

static bool hold(struct tx *tx, const struct drain *drain, struct err *err)
{
	struct held held;

	return sql_one(tx, &SQL_settle_hold, held_shape, &held, err,
	    v_id(drain->lease.peer), v_text(drain->lease.token));
}

static bool refusals_book(struct tx *tx, struct drain *drain,
    const struct refusals *refusals, struct err *err)
{
	const struct dead_letters letters = {
		.peer = drain->lease.peer,
		.origin = drain->lease.origin,
		.ids = refusals->dead,
		.whys = refusals->whys,
		.answers = refusals->words,
		.count = refusals->dead_count,
	};

	if (refusals->dead_count == 0 && refusals->aside_count == 0)
		return true;
	if (!hold(tx, drain, err))
		return false;
	if (letters.count > 0 && !dead_from_outbox(tx, &letters, err))
		return false;
	return refusals->aside_count == 0 ||
	    sql_none(tx, &SQL_settle_set_aside, err, v_id(drain->lease.peer),
		v_ids(refusals->aside, refusals->aside_count),
		v_texts(refusals->aside_words, refusals->aside_count),
		v_times(refusals->again_at, refusals->aside_count));
}

static bool state_change(struct tx *tx, struct drain *drain, const char *status,
    const char *why, struct err *err)
{
	struct held held;
	bool found;

	if (!sql_opt(tx, &SQL_settle_peer_state, held_shape, &held, &found, err,
		v_id(drain->lease.peer), v_text(drain->lease.token),
		v_text(status)))
		return false;
	if (!found)
		return true;
	log_warn("peer.state", F("peer", v_text(drain->lease.origin)),
	    F("class", v_text(status)), F("reason", v_text(why)));
	drain->lease.status = status;
	return true;
}

/* Does the peer's row say what we know? Not written with each batch. */
static bool row_is_current(
    const struct drain *drain, int64_t limit, int64_t upload)
{
	const struct peer_lease *lease = &drain->lease;

	return drain->answered_at &&
	    clock_steady_ms() - drain->answered_at < LEASE_RENEW_MS &&
	    limit == lease->retry_batch_limit &&
	    (!upload || upload == lease->remote_max_upload_size);
}

static bool peer_answered(struct tx *tx, struct drain *drain, struct err *err)
{
	struct peer_lease *lease = &drain->lease;
	int64_t upload = drain->max_upload_size;
	int64_t limit = lease->retry_batch_limit * 2;

	drain->culprits = 0;
	if (limit >= BATCH_EVENTS_MAX)
		limit = 0;
	if (row_is_current(drain, limit, upload))
		return true;
	if (!sql_none(tx, &SQL_settle_peer_answered, err, v_id(lease->peer),
		v_text(lease->token), v_int(drain->status), v_id(upload),
		v_id(limit), v_int(drain->took_ms)))
		return false;
	drain->answered_at = clock_steady_ms();
	lease->transport_failures = 0;
	lease->auth_failures = 0;
	lease->retry_batch_limit = limit;
	if (upload)
		lease->remote_max_upload_size = upload;
	return strcmp(lease->status, "active") == 0 ||
	    state_change(tx, drain, "active", "accepted a batch", err);
}

/* The server's clock wrote created_at; ours may be behind it. */
static int64_t age_us(const struct entry *entry, int64_t now_ms)
{
	return now_ms > entry->created_at ? (now_ms - entry->created_at) * 1000
					  : 0;
}

void settle_sending(const struct parcel *parcel)
{
	const struct batch *batch = &parcel->batch;
	int64_t now_ms = clock_wall_ms();

	for (size_t i = 0; i < batch->count; i++) {
		const struct item *item = &batch->items[i];

		if (!item->cancelled && !item->retry)
			metric_observe_us(
			    &figure_wait, 0, age_us(item->first, now_ms));
	}
}

static void count_accepted(const struct item *item, int64_t now_ms)
{
	metric_observe_us(&figure_total, 0, age_us(item->first, now_ms));
	for (const struct link *l = item->folded; l; l = l->next)
		metric_observe_us(&figure_total, 0, age_us(l->entry, now_ms));
}

void settle_log(const struct peer_lease *lease, const struct parcel *parcel,
    const struct answer *answer)
{
	const struct batch *batch = &parcel->batch;
	int64_t now_ms = clock_wall_ms();
	size_t accepted = 0;

	for (size_t i = 0; i < batch->count; i++) {
		if (!batch->items[i].accepted)
			continue;
		count_accepted(&batch->items[i], now_ms);
		accepted++;
	}
	metric_add(&figure_attempts, ATTEMPT_ACCEPTED, (int64_t)accepted);
	metric_observe_us(&figure_duration, 0, answer->took_ms * 1000);
	metric_set(&figure_batch, 0, (double)batch->live);
	log_info("outbox.sent", F("peer", v_text(lease->origin)),
	    F("code", v_int(answer->status)), F("ms", v_int(answer->took_ms)),
	    F("events", v_int((int64_t)batch->live)),
	    F("accepted", v_int((int64_t)accepted)),
	    F("bytes", v_int((int64_t)parcel->body.len)));
}

static bool settle_answered(struct tx *tx, struct drain *drain,
    struct settled *settled, struct err *err)
{
	struct batch *batch = &drain->out->batch;
	struct refusals refusals;

	refusals_init(&refusals, drain->scratch, entries_in(batch));
	for (size_t i = 0; i < batch->count; i++)
		if (!batch->items[i].cancelled)
			item_settle(
			    drain, settled, &refusals, &batch->items[i]);
	settle_log(&drain->lease, drain->out, &drain->answer);
	drain->status = drain->answer.status;
	drain->took_ms = drain->answer.took_ms;
	drain->max_upload_size = drain->answer.max_upload_size;
	return refusals_book(tx, drain, &refusals, err) &&
	    peer_answered(tx, drain, err);
}

/* Along the schedule, and not before the time that a failing peer named. */
static int64_t wait_after(int64_t attempt, const struct answer *answer)
{
	int64_t wait = backoff_spread_ms(backoff_s(attempt));

	return wait > answer->pause_ms ? wait : answer->pause_ms;
}

/* transport or auth is 1, the other 0. */
static bool peer_failed(struct tx *tx, struct drain *drain, int64_t transport,
    int64_t auth, struct err *err)
{
	struct peer_lease *lease = &drain->lease;
	int64_t attempt = transport ? lease->transport_failures + 1
				    : lease->auth_failures + 1;
	int64_t wait = wait_after(attempt, &drain->answer);
	const char *text = drain->answer.text;

	log_warn("outbox.failed", F("peer", v_text(lease->origin)),
	    F("class", v_text(transport ? "transport" : "auth")),
	    F("code", v_int(drain->answer.status)),
	    F("attempt", v_int(attempt)), F("wait_ms", v_int(wait)),
	    F("err", v_text(text)));
	metric_add(
	    &figure_failures, transport ? FAILED_TRANSPORT : FAILED_AUTH, 1);
	if (drain->uncounted)
		transport = 0;
	if (!sql_none(tx, &SQL_settle_peer_failed, err, v_id(lease->peer),
		v_text(lease->token), v_int(transport), v_int(auth),
		v_text(text), v_id(drain->answer.status), v_span(wait)))
		return false;
	lease->transport_failures += transport;
	lease->auth_failures += auth;
	if (lease->transport_failures < BACKOFF_UNREACHABLE_AT ||
	    strcmp(lease->status, "active") != 0)
		return true;
	return state_change(tx, drain, "unreachable", text, err);
}

static bool settle_pause(struct tx *tx, struct drain *drain, struct err *err)
{
	struct peer_lease *lease = &drain->lease;
	int64_t wait = drain->answer.pause_ms;

	metric_add(&figure_failures, FAILED_PAUSE, 1);
	log_info("peer.paused", F("peer", v_text(lease->origin)),
	    F("code", v_int(drain->answer.status)), F("wait_ms", v_int(wait)));
	return sql_none(tx, &SQL_settle_peer_paused, err, v_id(lease->peer),
	    v_text(lease->token), v_int(drain->answer.status),
	    v_span(wait + arc4random() % 100), v_int(drain->limit_per_minute));
}

static const struct item *only_item(const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		if (!batch->items[i].cancelled)
			return &batch->items[i];
	return NULL;
}

/* Halved until the culprit stands alone. */
static bool settle_blamed(struct tx *tx, struct drain *drain,
    struct settled *settled, struct err *err)
{
	struct peer_lease *lease = &drain->lease;
	const struct batch *batch = &drain->out->batch;
	size_t live = batch->live;
	struct refusals refusals;

	metric_add(&figure_failures, FAILED_BATCH, 1);
	if (live == 1 && drain->culprits >= DRAIN_CULPRITS_MAX) {
		settled->over = true;
		return peer_failed(tx, drain, 1, 0, err);
	}
	refusals_init(&refusals, drain->scratch, entries_in(batch));
	if (live == 1) {
		drain->culprits++;
		bury(drain, &refusals, only_item(batch), drain->answer.text,
		    NULL);
	}
	lease->retry_batch_limit = live == 1 ? 0 : (int64_t)(live + 1) / 2;
	drain->cursor = 0;
	return refusals_book(tx, drain, &refusals, err) &&
	    sql_none(tx, &SQL_settle_peer_limit, err, v_id(lease->peer),
		v_text(lease->token), v_id(lease->retry_batch_limit),
		v_int(drain->answer.status));
}

static bool settle_out(struct tx *tx, struct drain *drain,
    struct settled *settled, struct err *err)
{
	settled->over = drain->answer.kind != ANSWER_SETTLED &&
	    drain->answer.kind != ANSWER_BLAMED;
	switch (drain->answer.kind) {
	case ANSWER_SETTLED:
		return settle_answered(tx, drain, settled, err);
	case ANSWER_BLAMED:
		return settle_blamed(tx, drain, settled, err);
	case ANSWER_PAUSE:
		return settle_pause(tx, drain, err);
	case ANSWER_TRANSPORT:
		return peer_failed(tx, drain, 1, 0, err);
	case ANSWER_AUTH:
		return peer_failed(tx, drain, 0, 1, err);
	case ANSWER_ABORTED:
		return true;
	}
	return true;
}

bool settle(struct tx *tx, struct drain *drain, struct settled *settled,
    struct err *err)
{
	const struct owed *owed = &drain->owed;
	size_t most = owed->count;

	if (drain->out)
		most += entries_in(&drain->out->batch);
	settled->ids = arena_array(drain->scratch, most, sizeof(int64_t));
	settled->count = owed->count;
	if (owed->count > 0) {
		memcpy(settled->ids, owed->ids,
		    owed->count * sizeof(owed->ids[0]));
		metric_add(
		    &figure_removed, REMOVED_ACCEPTED, (int64_t)owed->count);
		if (!peer_answered(tx, drain, err))
			return false;
	}
	if (!drain->out)
		return true;
	if (!drain->answer.read)
		answer_read(&drain->answer, &drain->out->batch, drain->scratch);
	return settle_out(tx, drain, settled, err);
}

bool settle_unsendable(struct tx *tx, struct drain *drain, struct err *err)
{
	drain->answer = (struct answer){
		.kind = ANSWER_AUTH,
		.text = "the peer's secret does not open with our node key",
	};
	return peer_failed(tx, drain, 0, 1, err);
}

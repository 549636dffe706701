#include "outboxd/drain.h"

#include "common/base/clock.h"
#include "common/federation/peer.h"
#include "common/queue/lease.h"
#include "outboxd/drain.sql.h"
#include "outboxd/figures.h"
#include "outboxd/reading.h"
#include "outboxd/settle.h"

/* A peer with entries that may not go yet is looked at again after this. */
enum { PASSED_OVER_MS = 1000 };

struct marked {
	int64_t presented_through;
};

/* clang-format off */
static const struct shape marked_shape[] = {
	SHAPE(INT, struct marked, presented_through, NULL),
	SHAPE_END(struct marked),
};
/* clang-format on */

/* ---- a drain's life ---- */

static const char *secret_of(const struct drain *drain, struct bytes sealed)
{
	const struct peer peer = {
		.id = drain->lease.peer,
		.hmac_secret = sealed,
	};

	return peer_secret(drain->keep, drain->node, &peer);
}

/* Has it just taken something, and refused nothing since? Then its row need
 * not hear so again. */
static int64_t answered_at(const struct peer_lease *lease)
{
	int64_t ago = lease->accepted_ms;

	if (!ago || ago >= LEASE_RENEW_MS || lease->transport_failures ||
	    lease->auth_failures || strcmp(lease->status, "active") != 0)
		return 0;
	return clock_steady_ms() - ago;
}

struct drain *drain_new(const struct peer_lease *lease, const struct node *node)
{
	struct arena *keep = arena_new();
	struct drain *drain = ARENA_NEW(keep, struct drain);

	drain->keep = keep;
	drain->scratch = arena_new();
	drain->window = DRAIN_WINDOW;
	drain->rescan_ms = DRAIN_RESCAN_MS;
	drain->node = node;
	drain->blocks = blocks_new();
	horizon_init(&drain->horizon);
	drain->lease = claim_keep(keep, lease);
	drain->url =
	    arena_printf(keep, "%s/api/federation/relay", drain->lease.origin);
	drain->secret = secret_of(drain, lease->hmac_secret);
	drain->answered_at = answered_at(lease);
	drain->low = lease->empty_through > 0 ? lease->empty_through : 0;
	drain->horizon.floor = drain->low;
	drain->lowered_at = clock_steady_ms();
	return drain;
}

void drain_free(struct drain **drain)
{
	struct arena *keep;

	if (!*drain)
		return;
	keep = (*drain)->keep;
	arena_free(&(*drain)->scratch);
	load_free(&(*drain)->load);
	owed_done(&(*drain)->owed);
	blocks_free(&(*drain)->blocks);
	horizon_done(&(*drain)->horizon);
	*drain = NULL;
	arena_free(&keep);
}

/* ---- reading and choosing ---- */

static bool rescan_due(const struct drain *drain)
{
	return clock_steady_ms() - drain->scanned_at >= drain->rescan_ms ||
	    (drain->retry_at && clock_wall_ms() >= drain->retry_at);
}

bool drain_rescan_due(const struct drain *drain)
{
	return rescan_due(drain);
}

/* A backlog is read in larger pieces, large entries in smaller ones. */
static void window_adapt(struct drain *drain, const struct rows *window)
{
	const struct entry *entries = window->items;
	size_t bytes = 0;

	if (window->count < drain->window)
		return;
	for (size_t i = 0; i < window->count; i++)
		bytes += strlen(entries[i].payload);
	if (bytes > DRAIN_WINDOW_BYTES && drain->window > BATCH_EVENTS_MAX)
		drain->window /= 2;
	else if (bytes < DRAIN_WINDOW_BYTES / 2 &&
	    drain->window < DRAIN_WINDOW_MAX)
		drain->window *= 2;
}

static size_t links_count(const struct link *link)
{
	size_t count = 0;

	for (; link; link = link->next)
		count++;
	return count;
}

/* What met its delete or ran out of time leaves now. */
static bool remove_settled(struct tx *tx, const struct drain *drain,
    const struct batch *batch, struct err *err)
{
	size_t cancelled = links_count(batch->cancelled);
	size_t expired = links_count(batch->expired);
	size_t count = 0;
	int64_t *ids;

	if (cancelled + expired == 0)
		return true;
	ids = arena_array(batch->arena, cancelled + expired, sizeof(int64_t));
	for (const struct link *l = batch->cancelled; l; l = l->next)
		ids[count++] = l->entry->id;
	for (const struct link *l = batch->expired; l; l = l->next)
		ids[count++] = l->entry->id;
	metric_add(&figure_removed, REMOVED_CANCELLED, (int64_t)cancelled);
	metric_add(&figure_removed, REMOVED_EXPIRED, (int64_t)expired);
	metric_add(&figure_attempts, ATTEMPT_CANCELLED, (int64_t)cancelled);
	metric_add(&figure_attempts, ATTEMPT_EXPIRED, (int64_t)expired);
	if (expired > 0)
		log_warn("outbox.expired",
		    F("peer", v_text(drain->lease.origin)),
		    F("entry", v_id(batch->expired->entry->id)),
		    F("events", v_int((int64_t)expired)));
	tx_lazy(tx);
	tx_closing(tx);
	return sql_none(tx, &SQL_drain_remove, err, v_id(drain->lease.peer),
		   v_text(drain->lease.token), v_ids(ids, count)) &&
	    tx_commit(tx, err);
}

static void from_start(struct drain *drain)
{
	int64_t now = clock_steady_ms();

	if (now - drain->lowered_at >= DRAIN_WHOLLY_MS) {
		drain->low = 0;
		drain->lowered_at = now;
	}
	drain->cursor = 0;
	drain->whole = true;
	drain->lingering = false;
	drain->passed = 0;
	drain->retry_at = 0;
	drain->rescan_ms = DRAIN_RESCAN_MS;
	drain->scanned_at = now;
	blocks_clear(drain->blocks);
}

/* As far as we know the peer takes what comes. */
static bool takes_all(const struct peer_lease *lease)
{
	return !lease->retry_batch_limit && !lease->transport_failures &&
	    !lease->auth_failures && strcmp(lease->status, "active") == 0;
}

/* One that is not known to answer gets one batch, not a load of them. */
static size_t batches_max(const struct drain *drain)
{
	return takes_all(&drain->lease) ? LOAD_BATCHES_MAX : 1;
}

static void note_passed(struct drain *drain, const struct rows *window)
{
	const struct entry *entries = window->items;
	int64_t now = clock_wall_ms();

	drain->passed += (int64_t)window->count;
	for (size_t i = 0; i < window->count; i++)
		if (entries[i].retry_at > now &&
		    (!drain->retry_at || entries[i].retry_at < drain->retry_at))
			drain->retry_at = entries[i].retry_at;
}

/* What is left is little, and there may be nothing: a reading from the start
 * costs no more than one from the cursor, knows for sure, and may give the
 * lease back. It can't raise low, for it cannot tell what was drawn before it
 * from what was drawn since; when that lags, the longer way is taken. */
static bool may_end_at_once(const struct drain *drain)
{
	return drain->dry && !drain->ahead && !blocks_any(drain->blocks) &&
	    drain->lease.presented - drain->low <= DRAIN_LOW_LAG;
}

/* late: something appeared behind the cursor; the next reading is whole. */
static bool look_once(struct tx *tx, struct drain *drain,
    struct settled *settled, bool *late, struct err *err)
{
	struct load *load = drain->load;
	int64_t limit = drain->lease.retry_batch_limit;
	const struct batch_limits limits = {
		.events_max = limit ? (size_t)limit : BATCH_EVENTS_MAX,
		.presented_through = drain->lease.presented,
		.now = clock_wall_ms(),
	};
	size_t asked = drain->window;
	struct reading reading = {
		.most = asked,
		.may_free = drain->cursor == 0 && !drain->warm &&
		    may_end_at_once(drain),
	};

	load_reset(load);
	load->fresh =
	    !drain->lease.transport_failures && !drain->lease.auth_failures;
	if (!reading_next(tx, drain, settled, &reading, err))
		return false;
	load->window = reading.window;
	drain->freed = reading.freed;
	*late = reading.late;
	if (*late) {
		drain->cursor = 0;
		drain->more = false;
		return true;
	}
	drain->dry = load->window.count < asked;
	load_choose(
	    load, drain->blocks, &limits, batches_max(drain), &drain->cursor);
	drain->more = load->plain && load->count > 0 &&
	    load->window.count == asked && batches_max(drain) > 1;
	note_passed(drain, &load->window);
	window_adapt(drain, &load->window);
	return remove_settled(tx, drain, load_last(load), err);
}

/*
 * Reads on from the cursor until something can go; from the start when that
 * is dry, for entries commit late, and at least every second. One step passes
 * over so many windows and no more; the next one goes on from there. What was
 * found long and waiting is not read again each time.
 */
static bool look(struct tx *tx, struct drain *drain, struct settled settled,
    bool goes_on, struct err *err)
{
	int most = drain->brief ? 1 : DRAIN_WINDOWS_MAX;

	if (!goes_on && (rescan_due(drain) || may_end_at_once(drain)))
		drain->cursor = 0;
	if (drain->cursor == 0)
		from_start(drain);
	for (int windows = 0; windows < most; windows++) {
		size_t asked = drain->window;
		bool late;

		if (windows > 0)
			tx_lazy(tx);
		if (!look_once(tx, drain, &settled, &late, err))
			return false;
		settled.count = 0;
		if (drain->load->count > 0) {
			drain->whole = false;
			return true;
		}
		if (drain->load->window.count == asked &&
		    !blocks_full(drain->blocks))
			continue;
		if (!late && (drain->whole || drain->lingering))
			return true;
		from_start(drain);
	}
	drain->again = true;
	return true;
}

/* ---- presenting ---- */

static int64_t last_id(const struct load *load)
{
	return load->count > 0 ? load->parcels[load->count - 1].batch.last_id
			       : 0;
}

/* About DRAIN_AHEAD entries of this peer, going by those that were read. */
static int64_t ids_ahead(const struct drain *drain)
{
	const struct rows *window = &drain->load->window;
	const struct entry *entries = window->items;

	if (!drain->more)
		return 0;
	return (entries[window->count - 1].id - entries[0].id + 1) *
	    DRAIN_AHEAD / (int64_t)window->count;
}

static void presented(struct drain *drain)
{
	if (drain->lease.presented < last_id(drain->load))
		drain->lease.presented = last_id(drain->load);
}

/* The mark must be on the disk before a POST leaves. */
static bool present(struct tx *tx, struct drain *drain, struct err *err)
{
	struct marked marked;

	if (last_id(drain->load) <= drain->lease.presented_through) {
		presented(drain);
		return true;
	}
	tx_closing(tx);
	if (!sql_one(tx, &SQL_drain_present, marked_shape, &marked, err,
		v_id(drain->lease.peer), v_text(drain->lease.token),
		v_int(last_id(drain->load)), v_int(ids_ahead(drain)),
		v_int(takes_all(&drain->lease) ? DRAIN_RESERVE : 0)))
		return false;
	if (!tx_commit(tx, err))
		return false;
	drain->lease.presented_through = marked.presented_through;
	presented(drain);
	return true;
}

/* ---- a step ---- */

static bool read_secret(struct tx *tx, struct drain *drain, struct err *err)
{
	struct peer peer;

	if (!drain->fresh_secret)
		return true;
	if (!peer_by_id(tx, drain->lease.peer, &peer, err) ||
	    !tx_commit(tx, err))
		return false;
	drain->secret = peer_secret(drain->keep, drain->node, &peer);
	drain->fresh_secret = false;
	return true;
}

static bool give_back(
    struct tx *tx, struct drain *drain, int64_t rest_ms, struct err *err)
{
	load_reset(drain->load);
	drain->again = false;
	tx_lazy(tx);
	tx_closing(tx);
	return sql_none(tx, &SQL_drain_release, err, v_id(drain->lease.peer),
		   v_text(drain->lease.token), v_span(rest_ms),
		   v_int(drain->lease.empty_through), v_int(drain->low),
		   v_int(drain->lease.presented)) &&
	    tx_commit(tx, err);
}

static bool acknowledge_only(struct tx *tx, struct drain *drain,
    struct settled *settled, struct err *err)
{
	struct reading none = { .most = 0 };

	return settled->count == 0
	    ? tx_commit(tx, err)
	    : reading_next(tx, drain, settled, &none, err);
}

static bool linger(struct drain *drain)
{
	load_reset(drain->load);
	drain->linger = true;
	return true;
}

/* Nothing can go. Of a peer that has just taken something the lease is kept:
 * its next message need not be claimed. What waits behind a refusal is looked
 * at again after a second; when it is much, only what is new, and all of it
 * later. */
static bool rest(struct tx *tx, struct drain *drain, struct err *err)
{
	int64_t passed = drain->passed;

	if (drain->freed)
		return true;
	if (!blocks_any(drain->blocks))
		return drain->warm ? linger(drain)
				   : give_back(tx, drain, 0, err);
	if (passed < DRAIN_LINGER_AT || !drain->may_linger)
		return give_back(tx, drain, PASSED_OVER_MS, err);
	drain->lingering = true;
	drain->rescan_ms =
	    passed < DRAIN_LINGER_MAX_MS ? passed : DRAIN_LINGER_MAX_MS;
	return linger(drain);
}

static bool go_on(struct tx *tx, struct drain *drain,
    const struct settled *settled, struct err *err)
{
	bool goes_on = drain->again;

	drain->again = false;
	/* What was read before we were told is not what is there. */
	if (drain->fresh_secret) {
		drain->cursor = 0;
		drain->lease.snapshot = NULL;
	}
	if (!look(tx, drain, *settled, goes_on, err) ||
	    !read_secret(tx, drain, err))
		return false;
	if (drain->again)
		return true;
	if (drain->load->count == 0)
		return rest(tx, drain, err);
	if (!present(tx, drain, err))
		return false;
	load_seal(drain->load, drain->node, drain->secret);
	return true;
}

static bool step_ahead(struct tx *tx, struct drain *drain,
    struct settled *settled, struct err *err)
{
	bool late;

	return look_once(tx, drain, settled, &late, err) &&
	    present(tx, drain, err);
}

/*
 * Each statement that changes the outbox is fenced by the token, and a
 * transaction of its own, which leaves with it in one trip; what an answer
 * brings is booked together with its acknowledgement.
 */
static bool step_in(struct tx *tx, struct drain *drain, struct err *err)
{
	struct settled settled = { 0 };

	if (!settle(tx, drain, &settled, err))
		return false;
	drain->out = NULL;
	drain->owed.count = 0;
	if (drain->ahead)
		return step_ahead(tx, drain, &settled, err);
	if (!drain->secret && !drain->fresh_secret) {
		settled.over = true;
		if (!settle_unsendable(tx, drain, err))
			return false;
	}
	if (settled.over || drain->leaving)
		return acknowledge_only(tx, drain, &settled, err) &&
		    give_back(tx, drain, 0, err);
	return go_on(tx, drain, &settled, err);
}

bool drain_step(struct conn *conn, struct drain *drain, struct err *err)
{
	AUTO(tx_end) struct tx *tx = NULL;
	arena_reset(drain->scratch);
	if (!drain->load)
		drain->load = load_new();
	load_reset(drain->load);
	drain->linger = false;
	drain->more = false;
	drain->freed = false;
	tx = tx_new(conn, drain->load->arena);
	tx_lazy(tx);
	return step_in(tx, drain, err);
}

void drain_seal(const struct drain *drain, struct load *load)
{
	load_seal(load, drain->node, drain->secret);
}

bool drain_release(struct conn *conn, struct drain *drain, struct err *err)
{
	AUTO(tx_end) struct tx *tx = NULL;

	arena_reset(drain->scratch);
	if (!drain->load)
		drain->load = load_new();
	tx = tx_new(conn, drain->scratch);
	return give_back(tx, drain, 0, err);
}

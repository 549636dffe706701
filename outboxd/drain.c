#include "outboxd/drain.h"

#include "common/base/clock.h"
#include "common/federation/peer.h"
#include "common/queue/lease.h"
#include "outboxd/drain.sql.h"
#include "outboxd/figures.h"
#include "outboxd/settle.h"

/* A peer with entries that may not go yet is looked at again after this. */
enum { PASSED_OVER_MS = 1000 };

struct marked {
	int64_t presented_through;
};

/* clang-format off */
static const struct shape lease_shape[] = {
	SHAPE(ID,    struct drain_lease, peer, NULL),
	SHAPE(TEXT,  struct drain_lease, origin, NULL),
	SHAPE(TEXT,  struct drain_lease, token, NULL),
	SHAPE(TEXT,  struct drain_lease, status, NULL),
	SHAPE(BYTES, struct drain_lease, hmac_secret, NULL),
	SHAPE(INT,   struct drain_lease, presented_through, NULL),
	SHAPE(INT,   struct drain_lease, transport_failures, NULL),
	SHAPE(INT,   struct drain_lease, auth_failures, NULL),
	SHAPE(INT,   struct drain_lease, retry_batch_limit, NULL),
	SHAPE(INT,   struct drain_lease, remote_max_upload_size, NULL),
	SHAPE_END(struct drain_lease),
};

static const struct shape entry_shape[] = {
	SHAPE(ID,   struct entry, id, NULL),
	SHAPE(TEXT, struct entry, context_type, NULL),
	SHAPE(TEXT, struct entry, context_id, NULL),
	SHAPE(TEXT, struct entry, event_type, NULL),
	SHAPE(TEXT, struct entry, entity_id, NULL),
	SHAPE(TEXT, struct entry, payload, NULL),
	SHAPE(INT,  struct entry, encryption_version, NULL),
	SHAPE(TIME, struct entry, created_at, NULL),
	SHAPE(TIME, struct entry, expires_at, NULL),
	SHAPE(TIME, struct entry, retry_at, NULL),
	SHAPE(INT,  struct entry, refusals, NULL),
	SHAPE(TEXT, struct entry, reason, NULL),
	SHAPE_END(struct entry),
};

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

struct drain *drain_new(
    const struct drain_lease *lease, const struct node *node)
{
	struct arena *keep = arena_new();
	struct drain *drain = ARENA_NEW(keep, struct drain);

	drain->keep = keep;
	drain->arena = arena_new();
	drain->spare = arena_new();
	drain->owed = arena_array(keep, DRAIN_WINDOW, sizeof(int64_t));
	drain->windows[0] = arena_new();
	drain->windows[1] = arena_new();
	drain->node = node;
	drain->blocks = blocks_new();
	drain->lease = *lease;
	drain->lease.origin = arena_text(keep, lease->origin);
	drain->lease.token = arena_text(keep, lease->token);
	drain->lease.status = arena_text(keep, lease->status);
	drain->url =
	    arena_printf(keep, "%s/api/federation/relay", drain->lease.origin);
	drain->secret = secret_of(drain, lease->hmac_secret);
	drain->lease.hmac_secret = (struct bytes){ 0 };
	return drain;
}

void drain_free(struct drain **drain)
{
	struct arena *keep;

	if (!*drain)
		return;
	keep = (*drain)->keep;
	arena_free(&(*drain)->arena);
	arena_free(&(*drain)->spare);
	arena_free(&(*drain)->windows[0]);
	arena_free(&(*drain)->windows[1]);
	blocks_free(&(*drain)->blocks);
	*drain = NULL;
	arena_free(&keep);
}

bool drain_claim(struct conn *conn, struct arena *arena, int64_t worker,
    int64_t room, struct rows *leases, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

	tx_lazy(tx);
	return sql_many(tx, &SQL_drain_claim, lease_shape, leases, err,
		   v_int(room), v_span(LEASE_MS), v_id(worker)) &&
	    tx_commit(tx, err);
}

/* ---- reading and choosing ---- */

static bool fetch(struct tx *tx, struct drain *drain, int64_t most,
    const struct settled *settled, struct rows *window, struct err *err)
{
	const struct entry *entries;

	if (!sql_many(tx, &SQL_drain_fetch, entry_shape, window, err,
		v_id(drain->lease.peer), v_text(drain->lease.token),
		v_int(drain->cursor), v_int(most),
		v_ids(settled->ids, settled->count)))
		return false;
	if (window->count == 0)
		return err_set(err, ERR_CONFLICT, "the lease was lost");
	entries = window->items;
	if (!entries[0].id)
		window->count = 0;
	return true;
}

static size_t links_count(const struct link *link)
{
	size_t count = 0;

	for (; link; link = link->next)
		count++;
	return count;
}

/* What met its delete or ran out of time leaves now, under the same lock. */
static bool remove_settled(
    struct tx *tx, const struct drain *drain, struct err *err)
{
	const struct batch *batch = &drain->batch;
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
	return sql_none(tx, &SQL_drain_remove, err, v_id(drain->lease.peer),
	    v_ids(ids, count));
}

static void from_start(struct drain *drain)
{
	drain->cursor = 0;
	drain->whole = true;
	drain->scanned_at = clock_steady_ms();
	blocks_clear(drain->blocks);
}

static void choose(struct drain *drain)
{
	struct entry *entries = drain->window.items;
	const struct rows rest = {
		drain->window_at > 0 ? entries + drain->window_at : entries,
		drain->window.count - drain->window_at,
	};
	int64_t limit = drain->lease.retry_batch_limit;
	const struct batch_limits limits = {
		.events_max = limit ? (size_t)limit : BATCH_EVENTS_MAX,
		.presented_through = drain->lease.presented_through,
		.now = clock_wall_ms(),
	};

	batch_choose(
	    &drain->batch, drain->arena, drain->blocks, &rest, &limits);
	if (rest.count > 0)
		drain->cursor = drain->batch.cursor;
	while (drain->window_at < drain->window.count &&
	    entries[drain->window_at].id <= drain->cursor)
		drain->window_at++;
}

/* What was read and not yet sent is still as it was: entries only come and
 * go through us, and nothing but plain acceptance has happened since. */
static bool window_serves(const struct drain *drain)
{
	return drain->window.count - drain->window_at >= BATCH_EVENTS_MAX &&
	    drain->plain && drain->cursor != 0 && !blocks_any(drain->blocks) &&
	    clock_steady_ms() - drain->scanned_at < DRAIN_RESCAN_MS;
}

/* Nothing was folded, dropped, brought back or left behind: what follows the
 * cursor is untouched. */
static bool is_plain(const struct batch *batch)
{
	if (batch->live != batch->count || batch->retries || batch->cancelled ||
	    batch->expired || batch->last_id > batch->cursor)
		return false;
	for (size_t i = 0; i < batch->count; i++)
		if (batch->items[i].folded)
			return false;
	return true;
}

/*
 * Nothing has to be read, so nothing is said to the database either: what is
 * settled is acknowledged with the next reading, within a second. A crash
 * until then sends it again, and the peer knows it.
 */
static void owe(struct drain *drain, const struct settled *settled)
{
	assert(settled->count <= DRAIN_WINDOW);
	if (settled->count > 0)
		memcpy(drain->owed, settled->ids,
		    settled->count * sizeof(settled->ids[0]));
	drain->owed_count = settled->count;
}

static bool look_once(struct tx *tx, struct drain *drain,
    const struct settled *settled, struct err *err)
{
	if (window_serves(drain)) {
		owe(drain, settled);
	} else {
		if (!fetch(
			tx, drain, DRAIN_WINDOW, settled, &drain->window, err))
			return false;
		drain->window_at = 0;
	}
	choose(drain);
	drain->plain = is_plain(&drain->batch);
	return remove_settled(tx, drain, err);
}

/*
 * Reads on from the cursor until something can go; from the start when that
 * is dry, for entries commit late, and at least every second. One step passes
 * over so many windows and no more; the next one goes on from there.
 */
static bool look(struct tx *tx, struct drain *drain, struct settled settled,
    bool goes_on, struct err *err)
{
	if (!goes_on &&
	    clock_steady_ms() - drain->scanned_at >= DRAIN_RESCAN_MS)
		drain->cursor = 0;
	if (drain->cursor == 0)
		from_start(drain);
	for (int windows = 0; windows < DRAIN_WINDOWS_MAX; windows++) {
		if (!look_once(tx, drain, &settled, err))
			return false;
		settled.count = 0;
		if (drain->batch.live > 0) {
			drain->whole = false;
			return true;
		}
		if (drain->window.count == DRAIN_WINDOW &&
		    !blocks_full(drain->blocks))
			continue;
		if (drain->whole)
			return true;
		from_start(drain);
	}
	drain->again = true;
	return true;
}

/* ---- presenting ---- */

static bool present(struct tx *tx, struct drain *drain, struct err *err)
{
	bool backlog = drain->window.count == DRAIN_WINDOW;
	struct marked marked;

	if (!sql_one(tx, &SQL_drain_present, marked_shape, &marked, err,
		v_id(drain->lease.peer), v_text(drain->lease.token),
		v_int(drain->batch.last_id), v_int(backlog ? DRAIN_AHEAD : 0)))
		return false;
	if (!tx_commit(tx, err))
		return false;
	drain->lease.presented_through = marked.presented_through;
	return true;
}

static bool must_present(const struct drain *drain)
{
	return drain->batch.live > 0 &&
	    drain->batch.last_id > drain->lease.presented_through;
}

/* ---- the request ---- */

static void sign(struct drain *drain)
{
	struct arena *arena = drain->arena;
	const char *timestamp =
	    arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];

	sign_make(drain->secret, timestamp, nonce, drain->body, signature);
	drain->headers[0] = (struct http_header){ "X-Federation-Signature",
		arena_text(arena, signature) };
	drain->headers[1] = (struct http_header){ "X-Federation-Origin",
		drain->node->origin.text };
	drain->headers[2] =
	    (struct http_header){ "X-Federation-Timestamp", timestamp };
	drain->headers[3] = (struct http_header){ "X-Federation-Nonce", nonce };
	drain->headers[4] =
	    (struct http_header){ "Content-Type", "application/json" };
}

static void write_request(struct drain *drain)
{
	struct buf buf;

	buf_init(&buf, drain->arena, BATCH_BODY_MAX);
	batch_write(&drain->batch, drain->node->origin.text, &buf);
	drain->body = buf_bytes(&buf);
	sign(drain);
	drain->sending = true;
}

/* ---- a step ---- */

static bool read_secret(struct tx *tx, struct drain *drain, struct err *err)
{
	struct peer peer;

	if (!drain->fresh_secret)
		return true;
	if (!peer_by_id(tx, drain->lease.peer, &peer, err))
		return false;
	drain->secret = secret_of(drain, peer.hmac_secret);
	drain->fresh_secret = false;
	return true;
}

static bool give_back(struct tx *tx, struct drain *drain, struct err *err)
{
	return sql_none(tx, &SQL_drain_release, err, v_id(drain->lease.peer),
		   v_text(drain->lease.token),
		   v_span(drain->passed_over ? PASSED_OVER_MS : 0)) &&
	    tx_commit(tx, err);
}

static bool acknowledge_only(struct tx *tx, struct drain *drain,
    const struct settled *settled, struct err *err)
{
	struct rows none;

	return settled->count == 0 || fetch(tx, drain, 0, settled, &none, err);
}

static bool go_on(struct tx *tx, struct drain *drain,
    const struct settled *settled, bool lazy, struct err *err)
{
	bool goes_on = drain->again;

	drain->again = false;
	/* What was read before we were told is not what is there. */
	if (drain->fresh_secret)
		drain->cursor = 0;
	if (!look(tx, drain, *settled, goes_on, err) ||
	    !read_secret(tx, drain, err))
		return false;
	if (drain->again)
		return tx_commit(tx, err);
	if (drain->batch.live == 0) {
		drain->passed_over = blocks_any(drain->blocks);
		return give_back(tx, drain, err);
	}
	/* The mark must be on the disk before the POST leaves. */
	if (must_present(drain)) {
		if (lazy && !tx_commit(tx, err))
			return false;
		if (!present(tx, drain, err))
			return false;
	} else if (!tx_commit(tx, err)) {
		return false;
	}
	write_request(drain);
	return true;
}

/* The batch that is out keeps its arena, what was read keeps its own. */
static void step_arenas(struct drain *drain)
{
	struct arena *before = drain->arena;

	drain->arena = drain->spare;
	drain->spare = before;
	arena_reset(drain->arena);
	arena_reset(drain->windows[1]);
}

/* A window that was read in this step is the one to keep. */
static void step_windows(struct drain *drain, const void *before)
{
	struct arena *kept = drain->windows[1];

	if (drain->window.items == before)
		return;
	drain->windows[1] = drain->windows[0];
	drain->windows[0] = kept;
}

static bool step_in(
    struct tx *tx, struct drain *drain, bool lazy, struct err *err)
{
	struct settled settled = { 0 };

	if (drain->has_answer && !settle(tx, drain, &settled, err))
		return false;
	drain->has_answer = false;
	if (!drain->secret && !drain->fresh_secret) {
		settled.over = true;
		if (!settle_unsendable(tx, drain, err))
			return false;
	}
	if (settled.over || drain->leaving)
		return acknowledge_only(tx, drain, &settled, err) &&
		    give_back(tx, drain, err);
	return go_on(tx, drain, &settled, lazy, err);
}

bool drain_step(struct conn *conn, struct drain *drain, struct err *err)
{
	const void *window = drain->window.items;
	AUTO(tx_end) struct tx *tx = NULL;
	bool lazy = drain->has_answer;
	bool good;

	step_arenas(drain);
	drain->sending = false;
	tx = tx_new(conn, drain->windows[1]);
	if (lazy)
		tx_lazy(tx);
	good = step_in(tx, drain, lazy, err);
	step_windows(drain, window);
	return good;
}

bool drain_release(struct conn *conn, struct drain *drain, struct err *err)
{
	AUTO(tx_end) struct tx *tx = NULL;

	arena_reset(drain->arena);
	tx = tx_new(conn, drain->arena);
	return give_back(tx, drain, err);
}

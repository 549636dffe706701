#include "outboxd/reading.h"

#include "outboxd/reading.sql.h"

/* Ids one after the other, as entries of a peer that is busy alone have. */
struct run {
	size_t begin;
	size_t count;
};

/* clang-format off */
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
	SHAPE(TEXT, struct entry, snapshot, NULL),
	SHAPE(BOOL, struct entry, late, NULL),
	SHAPE(INT,  struct entry, empty_through, NULL),
	SHAPE_END(struct entry),
};
/* clang-format on */

/* Where the outbox is read on: nothing is below low. */
static int64_t reads_after(const struct drain *drain)
{
	return drain->cursor > drain->low ? drain->cursor : drain->low;
}

/* Those of settled that reading on from the cursor would meet again. */
static size_t ids_above(
    const struct drain *drain, const struct settled *settled, int64_t *above)
{
	size_t count = 0;

	for (size_t i = 0; i < settled->count; i++)
		if (settled->ids[i] > reads_after(drain))
			above[count++] = settled->ids[i];
	return count;
}

static struct run run_longest(const struct settled *settled)
{
	struct run longest = { 0 };
	struct run run = { 0 };

	for (size_t i = 0; i < settled->count; i++) {
		if (i > 0 && settled->ids[i] != settled->ids[i - 1] + 1)
			run = (struct run){ .begin = i };
		run.count++;
		if (run.count > longest.count)
			longest = run;
	}
	return longest;
}

static void run_cut(struct settled *settled, struct run run)
{
	size_t end = run.begin + run.count;

	memmove(settled->ids + run.begin, settled->ids + end,
	    (settled->count - end) * sizeof(settled->ids[0]));
	settled->count -= run.count;
}

/* A reading from the start saw everything that will ever be at or below the
 * floor: where its first entry is, or nothing, the outbox begins. */
static void low_raise(struct drain *drain, const struct rows *window)
{
	const struct entry *entries = window->items;
	int64_t low = drain->horizon.floor;

	if (window->count > 0 && entries[0].id <= low)
		low = entries[0].id - 1;
	if (low > drain->low)
		drain->low = low;
}

/* Somebody has put something back behind it. */
static void low_check(struct drain *drain, int64_t empty_through)
{
	if (empty_through == drain->lease.empty_through)
		return;
	drain->lease.empty_through = empty_through;
	drain->low = empty_through > 0 ? empty_through : 0;
}

/* What the first row says; the others are the window. */
static void reading_note(struct drain *drain, struct reading *reading)
{
	struct rows *window = &reading->window;
	const struct entry *about = window->items;
	int64_t after = reads_after(drain);

	reading->late = about->late;
	window->items = (struct entry *)window->items + 1;
	window->count = reading->late ? 0 : window->count - 1;
	if (reading->most == 0)
		return;
	horizon_note(&drain->horizon, about->snapshot, after);
	if (!reading->late && after == drain->low)
		low_raise(drain, window);
	low_check(drain, about->empty_through);
}

bool reading_next(struct tx *tx, struct drain *drain, struct settled *settled,
    struct reading *reading, struct err *err)
{
	int64_t *above =
	    arena_array(drain->scratch, settled->count, sizeof(int64_t));
	size_t above_count = ids_above(drain, settled, above);
	struct run run = run_longest(settled);
	int64_t first = run.count > 0 ? settled->ids[run.begin] : 0;

	run_cut(settled, run);
	tx_closing(tx);
	if (!sql_many(tx, &SQL_reading_next, entry_shape, &reading->window, err,
		v_id(drain->lease.peer), v_text(drain->lease.token),
		v_int(reads_after(drain)), v_int((int64_t)reading->most),
		v_ids(settled->ids, settled->count), v_ids(above, above_count),
		v_int(drain->horizon.floor),
		v_text(horizon_seen(&drain->horizon)), v_int(first),
		v_int(first + (int64_t)run.count - 1)))
		return false;
	if (reading->window.count == 0)
		return err_set(err, ERR_CONFLICT, "the lease was lost");
	reading_note(drain, reading);
	return tx_commit(tx, err);
}

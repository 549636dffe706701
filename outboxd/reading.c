#include "outboxd/reading.h"

#include "outboxd/reading.sql.h"

/* Ids one after the other, as entries of a peer that is busy alone have. */
struct run {
	size_t begin;
	size_t count;
};

/* The first row tells of the reading, and may have no entry. */
struct read_row {
	struct entry entry;
	const char *snapshot;
	bool late;  /* one has appeared behind the cursor */
	bool freed; /* nothing is there, and the lease was given back */
	int64_t empty_through;
};

/* clang-format off */
static const struct shape row_shape[] = {
	ENTRY_SHAPE(struct read_row, entry),
	SHAPE(TEXT, struct read_row, snapshot, NULL),
	SHAPE(BOOL, struct read_row, late, NULL),
	SHAPE(BOOL, struct read_row, freed, NULL),
	SHAPE(INT,  struct read_row, empty_through, NULL),
	SHAPE_END(struct read_row),
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

/* Has somebody put something back behind it? */
static bool low_moved(struct drain *drain, int64_t empty_through)
{
	if (empty_through == drain->lease.empty_through)
		return false;
	drain->lease.empty_through = empty_through;
	drain->low = empty_through > 0 ? empty_through : 0;
	return true;
}

static struct rows entries_of(struct arena *arena, const struct rows *rows)
{
	const struct read_row *read = rows->items;
	struct entry *entries =
	    arena_array(arena, rows->count, sizeof(struct entry));
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (read[i].entry.id)
			entries[count++] = read[i].entry;
	return (struct rows){ entries, count };
}

/* What the first row says, and the window. A reading that began
 * where the outbox no longer does is late, too. */
static void reading_note(struct arena *arena, struct drain *drain,
    struct reading *reading, const struct rows *rows)
{
	const struct read_row *about = rows->items;
	int64_t after = reads_after(drain);
	bool whole = after == drain->low;

	reading->freed = about->freed;
	if (reading->most == 0)
		return;
	horizon_note(&drain->horizon, about->snapshot, after);
	reading->late =
	    about->late || (low_moved(drain, about->empty_through) && whole);
	if (reading->late)
		return;
	reading->window = entries_of(arena, rows);
	if (whole)
		low_raise(drain, &reading->window);
}

/* What came with the claim, once, while nothing has happened since. */
static bool was_brought(
    struct drain *drain, const struct settled *settled, struct reading *reading)
{
	struct peer_lease *lease = &drain->lease;
	const char *snapshot = lease->snapshot;

	lease->snapshot = NULL;
	if (!snapshot || settled->count > 0 || reading->most == 0 ||
	    reads_after(drain) != drain->low)
		return false;
	reading->window = lease->first;
	horizon_note(&drain->horizon, snapshot, drain->low);
	low_raise(drain, &reading->window);
	return true;
}

/* Nothing is to be written. */
static bool peek_rows(struct tx *tx, const struct drain *drain,
    const struct reading *reading, struct rows *rows, struct err *err)
{
	tx_closing(tx);
	return sql_many(tx, &SQL_reading_peek, row_shape, rows, err,
	    v_id(drain->lease.peer), v_text(drain->lease.token),
	    v_int(reads_after(drain)), v_int((int64_t)reading->most),
	    v_int(drain->horizon.floor), v_text(horizon_seen(&drain->horizon)));
}

static bool read_rows(struct tx *tx, const struct drain *drain,
    struct settled *settled, const struct reading *reading, struct rows *rows,
    struct err *err)
{
	const struct peer_lease *lease = &drain->lease;
	int64_t *above =
	    arena_array(drain->scratch, settled->count, sizeof(int64_t));
	size_t above_count = ids_above(drain, settled, above);
	struct run run = run_longest(settled);
	int64_t first = run.count > 0 ? settled->ids[run.begin] : 0;

	run_cut(settled, run);
	tx_closing(tx);
	return sql_many(tx, &SQL_reading_next, row_shape, rows, err,
	    v_id(lease->peer), v_text(lease->token), v_int(reads_after(drain)),
	    v_int((int64_t)reading->most), v_ids(settled->ids, settled->count),
	    v_ids(above, above_count), v_int(drain->horizon.floor),
	    v_text(horizon_seen(&drain->horizon)), v_int(first),
	    v_int(first + (int64_t)run.count - 1), v_bool(reading->may_free),
	    v_int(lease->empty_through), v_int(drain->low),
	    v_int(lease->presented));
}

bool reading_next(struct tx *tx, struct drain *drain, struct settled *settled,
    struct reading *reading, struct err *err)
{
	bool writes = settled->count > 0 || reading->may_free;
	struct rows rows;

	if (was_brought(drain, settled, reading))
		return tx_commit(tx, err);
	if (writes ? !read_rows(tx, drain, settled, reading, &rows, err)
		   : !peek_rows(tx, drain, reading, &rows, err))
		return false;
	if (rows.count == 0)
		return err_set(err, ERR_CONFLICT, "the lease was lost");
	reading_note(tx_arena(tx), drain, reading, &rows);
	return tx_commit(tx, err);
}

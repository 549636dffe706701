#include "common/federation/heard.h"

#include "common/federation/heard.sql.h"

struct heard {
	const char *event_id;
};

static const struct shape heard_shape[] = {
	SHAPE(TEXT, struct heard, event_id, NULL),
	SHAPE_END(struct heard),
};

/* Ids of the run's events in a state; with a conversation, if it needs one. */
static size_t ids_of(const struct relay_range *run, enum event_state state,
    bool placed, const char **ids)
{
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++)
		if (run->events[i].state == state &&
		    (!placed || run->events[i].channel))
			ids[count++] = run->events[i].message_id;
	return count;
}

static void skip(struct relay_range *run, const char *id)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->events[i].state == EVENT_OPEN &&
		    strcmp(run->events[i].message_id, id) == 0)
			event_accept(&run->events[i]);
}

bool heard_skip(struct relay_range *run, struct err *err)
{
	const char **ids =
	    arena_array(tx_arena(run->tx), run->count, sizeof(*ids));
	size_t count = ids_of(run, EVENT_OPEN, false, ids);
	const struct heard *heard;
	struct rows rows;

	if (count == 0)
		return true;
	if (!sql_many(run->tx, &SQL_heard_find, heard_shape, &rows, err,
		v_text(run->batch->source.text),
		v_text(run->events[0].type->name), v_texts(ids, count)))
		return false;
	heard = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		skip(run, heard[i].event_id);
	return true;
}

bool heard_keep(struct relay_range *run, struct err *err)
{
	const char **ids =
	    arena_array(tx_arena(run->tx), run->count, sizeof(*ids));
	size_t count = ids_of(run, EVENT_ACCEPTED, true, ids);

	return count == 0 ||
	    sql_none(run->tx, &SQL_heard_add, err,
		v_text(run->batch->source.text),
		v_text(run->events[0].type->name), v_texts(ids, count));
}

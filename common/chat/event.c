#include "common/chat/event.h"

#include "common/base/id.h"
#include "common/pg/notify.h"

#include "common/chat/event.sql.h"

struct reached {
	int64_t id;
	int64_t seq;
};

static const struct shape reached_shape[] = {
	SHAPE(ID, struct reached, id, NULL),
	SHAPE(INT, struct reached, seq, NULL),
	SHAPE_END(struct reached),
};

struct seq_steps seq_steps_of(
    struct arena *arena, const int64_t *conversations, size_t count)
{
	struct seq_steps steps = {
		.conversations = arena_array(arena, count, sizeof(int64_t)),
		.added = arena_array(arena, count, sizeof(int64_t)),
		.offsets = arena_array(arena, count, sizeof(int64_t)),
	};

	for (size_t i = 0; i < count; i++) {
		size_t at = 0;

		while (at < steps.count &&
		    steps.conversations[at] != conversations[i])
			at++;
		if (at == steps.count)
			steps.conversations[steps.count++] = conversations[i];
		steps.offsets[i] = ++steps.added[at];
	}
	return steps;
}

bool changes_append(struct tx *tx, const struct change *changes, size_t count,
    int64_t *seq, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *conversations = arena_array(arena, count, sizeof(int64_t));
	int64_t *entities = arena_array(arena, count, sizeof(int64_t));
	int64_t *actors = arena_array(arena, count, sizeof(int64_t));
	const char **kinds = arena_array(arena, count, sizeof(*kinds));
	struct rows rows = { 0 };
	const struct reached *reached;
	struct seq_steps steps;

	for (size_t i = 0; i < count; i++) {
		conversations[i] = changes[i].conversation;
		kinds[i] = changes[i].kind;
		entities[i] = changes[i].entity;
		actors[i] = changes[i].actor;
	}
	steps = seq_steps_of(arena, conversations, count);
	if (count &&
	    !sql_many(tx, &SQL_changes_append, reached_shape, &rows, err,
		v_ids(steps.conversations, steps.count),
		v_ids(steps.added, steps.count), v_ids(conversations, count),
		v_ids(steps.offsets, count), v_texts(kinds, count),
		v_ids(entities, count), v_ids(actors, count)))
		return false;
	reached = rows.items;
	for (size_t i = 0; i < rows.count; i++) {
		signal_conversation(tx, reached[i].id, reached[i].seq);
		if (seq)
			*seq = reached[i].seq;
	}
	return true;
}

bool user_changes_append(struct tx *tx, const struct user_change *changes,
    size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *users = arena_array(arena, count, sizeof(*users));
	int64_t *actors = arena_array(arena, count, sizeof(*actors));
	const char **kinds = arena_array(arena, count, sizeof(*kinds));
	const char **entities = arena_array(arena, count, sizeof(*entities));
	struct rows rows = { 0 };
	const struct reached *reached;

	for (size_t i = 0; i < count; i++) {
		users[i] = changes[i].user;
		kinds[i] = changes[i].kind;
		entities[i] = changes[i].entity;
		actors[i] = changes[i].actor;
	}
	if (count &&
	    !sql_many(tx, &SQL_user_changes_append, reached_shape, &rows, err,
		v_ids(users, count), v_texts(kinds, count),
		v_texts(entities, count), v_ids(actors, count)))
		return false;
	reached = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		signal_user(tx, reached[i].id, reached[i].seq);
	return true;
}

bool joins_append(struct tx *tx, const int64_t *users,
    const int64_t *conversations, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct user_change *changes =
	    arena_array(arena, count, sizeof(*changes));

	for (size_t i = 0; i < count; i++)
		changes[i] = (struct user_change){ users[i], "channel_joined",
			id_text(arena, conversations[i]), 0 };
	return user_changes_append(tx, changes, count, err);
}

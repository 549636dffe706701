#include "common/chat/read_state.h"

#include "common/base/id.h"
#include "common/chat/event.h"

#include "common/chat/read_state.sql.h"

enum { JSON_MAX = 16 << 20 };

struct moved {
	int64_t user_id;
	int64_t channel_id;
};

static const struct shape moved_shape[] = {
	SHAPE(ID, struct moved, user_id, NULL),
	SHAPE(ID, struct moved, channel_id, NULL),
	SHAPE_END(struct moved),
};

struct position {
	int64_t id;
};

static const struct shape position_shape[] = {
	SHAPE(ID, struct position, id, NULL),
	SHAPE_END(struct position),
};

struct state {
	int64_t channel_id;
	int64_t last_read_message_id;
};

static const struct shape state_shape[] = {
	SHAPE(ID, struct state, channel_id, "channelId"),
	SHAPE(ID, struct state, last_read_message_id, "lastReadMessageId"),
	SHAPE_END(struct state),
};

/* ---- forward ---- */

static void note_moved(
    struct read_mark *marks, size_t count, const struct moved *moved)
{
	for (size_t i = 0; i < count; i++)
		if (marks[i].user == moved->user_id &&
		    marks[i].channel == moved->channel_id)
			marks[i].moved = true;
}

static bool tell(struct tx *tx, const struct rows *rows, struct err *err)
{
	const struct moved *moved = rows->items;
	struct user_change *changes =
	    arena_array(tx_arena(tx), rows->count, sizeof(*changes));

	for (size_t i = 0; i < rows->count; i++)
		changes[i] = (struct user_change){
			.user = moved[i].user_id,
			.kind = "channel_ack",
			.entity = id_text(tx_arena(tx), moved[i].channel_id),
			.actor = moved[i].user_id,
		};
	return user_changes_append(tx, changes, rows->count, err);
}

static bool move(struct tx *tx, const struct read_mark *marks, size_t count,
    struct rows *moved, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *users = arena_array(arena, count, sizeof(*users));
	int64_t *channels = arena_array(arena, count, sizeof(*channels));
	int64_t *messages = arena_array(arena, count, sizeof(*messages));
	int64_t *times = arena_array(arena, count, sizeof(*times));

	for (size_t i = 0; i < count; i++) {
		users[i] = marks[i].user;
		channels[i] = marks[i].channel;
		messages[i] = marks[i].message;
		times[i] = marks[i].said_at;
	}
	return sql_many(tx, &SQL_read_states_move, moved_shape, moved, err,
	    v_ids(users, count), v_ids(channels, count), v_ids(messages, count),
	    v_times(times, count));
}

bool read_states_move(
    struct tx *tx, struct read_mark *marks, size_t count, struct err *err)
{
	struct rows rows;
	const struct moved *moved;

	if (count == 0)
		return true;
	if (!move(tx, marks, count, &rows, err))
		return false;
	moved = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		note_moved(marks, count, &moved[i]);
	return rows.count == 0 || tell(tx, &rows, err);
}

/* ---- by the person himself ---- */

static bool message_check(
    struct tx *tx, int64_t channel, int64_t message, struct err *err)
{
	struct position position;
	bool found;

	if (!sql_opt(tx, &SQL_read_state_message, position_shape, &position,
		&found, err, v_id(message), v_id(channel)))
		return false;
	return found || err_set(err, ERR_ABSENT, "Message not found");
}

bool read_state_ack(
    struct tx *tx, struct read_mark *mark, int64_t *reached, struct err *err)
{
	struct position position;

	if (!message_check(tx, mark->channel, mark->message, err) ||
	    !read_states_move(tx, mark, 1, err) ||
	    !sql_one(tx, &SQL_read_state_reached, position_shape, &position,
		err, v_id(mark->user), v_id(mark->channel)))
		return false;
	*reached = position.id;
	return true;
}

bool read_state_mark_unread(struct tx *tx, int64_t channel, int64_t user,
    int64_t message, struct err *err)
{
	struct user_change change = {
		.user = user,
		.kind = "mark_unread",
		.entity = id_text(tx_arena(tx), channel),
		.actor = user,
	};

	return (!message || message_check(tx, channel, message, err)) &&
	    sql_none(tx, &SQL_read_state_mark_unread, err, v_id(user),
		v_id(channel), v_id(message)) &&
	    user_changes_append(tx, &change, 1, err);
}

/* ---- reading ---- */

bool read_states_json(
    struct tx *tx, int64_t user, const char **json, struct err *err)
{
	struct rows rows;
	struct buf text;

	if (!sql_many(
		tx, &SQL_read_states_of, state_shape, &rows, err, v_id(user)))
		return false;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_write_rows(&text, state_shape, &rows);
	*json = text.data;
	return true;
}

#include "common/chat/reaction.h"

#include "common/chat/event.h"

#include "common/chat/reaction.sql.h"

/* clang-format off */
const struct shape reaction_shape[] = {
	SHAPE(ID,   struct reaction, id, "id"),
	SHAPE(ID,   struct reaction, dm_message_id, "messageId"),
	SHAPE(ID,   struct reaction, user_id, "userId"),
	SHAPE(TEXT, struct reaction, emoji, "emoji"),
	SHAPE(TIME, struct reaction, created_at, "createdAt"),
	SHAPE_END(struct reaction),
};
/* clang-format on */

bool emoji_is_usable(const char *emoji)
{
	const unsigned char *text = (const unsigned char *)emoji;

	for (size_t i = 0; text[i]; i++)
		if (text[i] <= ' ' || text[i] == 0x7f ||
		    (text[i] == 0xc2 && text[i + 1] <= 0xa0))
			return false;
	return *emoji && json_units(emoji) <= EMOJI_MAX;
}

bool reactions_of(struct tx *tx, const int64_t *messages, size_t count,
    struct rows *reactions, struct err *err)
{
	return sql_many(tx, &SQL_reactions_of, reaction_shape, reactions, err,
	    v_ids(messages, count));
}

bool reaction_message(struct tx *tx, int64_t message, int64_t person,
    struct message *found, struct err *err)
{
	bool is_there;

	if (!sql_opt(tx, &SQL_reaction_message, message_row_shape, found,
		&is_there, err, v_id(message), v_id(person)))
		return false;
	return is_there || err_set(err, ERR_ABSENT, "Message not found");
}

/* ---- what was said before ---- */

struct state {
	int64_t place;
	int64_t now;
	int64_t id; /* 0: no reaction there */
	int64_t created_at;
	int64_t changed_at;
	int64_t removed_at; /* 0: never, or forgotten */
	int64_t many;
};

/* clang-format off */
static const struct shape state_shape[] = {
	SHAPE(INT,  struct state, place, NULL),
	SHAPE(TIME, struct state, now, NULL),
	SHAPE(ID,   struct state, id, NULL),
	SHAPE(TIME, struct state, created_at, NULL),
	SHAPE(TIME, struct state, changed_at, NULL),
	SHAPE(TIME, struct state, removed_at, NULL),
	SHAPE(INT,  struct state, many, NULL),
	SHAPE_END(struct state),
};
/* clang-format on */

static bool same_thing(
    const struct reaction_word *a, const struct reaction_word *b)
{
	return a->message == b->message && a->person == b->person &&
	    strcmp(a->emoji, b->emoji) == 0;
}

/* Of several words about one thing only the latest is applied. */
static bool is_latest(
    const struct reaction_word *words, size_t count, size_t place)
{
	const struct reaction_word *word = &words[place];

	for (size_t i = 0; i < count; i++) {
		const struct reaction_word *other = &words[i];

		if (same_thing(other, word) &&
		    (other->at > word->at ||
			(other->at == word->at && other < word)))
			return false;
	}
	return true;
}

/* The words that are left to apply, and columns of them for a statement. */
struct plan {
	struct reaction_word **words;
	size_t count;
	int64_t *ids, *messages, *persons, *created, *times;
	const char **emojis;
};

static struct plan plan_new(struct arena *arena, size_t room)
{
	return (struct plan){
		.words = arena_array(arena, room, sizeof(void *)),
		.ids = arena_array(arena, room, sizeof(int64_t)),
		.messages = arena_array(arena, room, sizeof(int64_t)),
		.persons = arena_array(arena, room, sizeof(int64_t)),
		.created = arena_array(arena, room, sizeof(int64_t)),
		.times = arena_array(arena, room, sizeof(int64_t)),
		.emojis = arena_array(arena, room, sizeof(char *)),
	};
}

static void plan_add(struct plan *plan, struct reaction_word *word)
{
	size_t i = plan->count++;

	plan->words[i] = word;
	plan->ids[i] = word->id;
	plan->messages[i] = word->message;
	plan->persons[i] = word->person;
	plan->created[i] = word->created_at;
	plan->times[i] = word->at;
	plan->emojis[i] = word->emoji;
}

static bool states_read(
    struct tx *tx, const struct plan *all, struct rows *states, struct err *err)
{
	return sql_many(tx, &SQL_reactions_state, state_shape, states, err,
	    v_ids(all->messages, all->count), v_ids(all->persons, all->count),
	    v_texts(all->emojis, all->count));
}

static struct plan plan_of(
    struct arena *arena, struct reaction_word *words, size_t count)
{
	struct plan plan = plan_new(arena, count);

	for (size_t i = 0; i < count; i++) {
		words[i].outcome = REACTION_STAYS;
		if (!is_latest(words, count, i))
			continue;
		words[i].outcome = REACTION_NO_MESSAGE;
		plan_add(&plan, &words[i]);
	}
	return plan;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static bool tell(
    struct tx *tx, const struct plan *plan, const char *kind, struct err *err)
{
	struct change *changes =
	    arena_array(tx_arena(tx), plan->count, sizeof(*changes));
	size_t n = 0;

	for (size_t i = 0; i < plan->count; i++) {
		const struct reaction_word *word = plan->words[i];

		if (word->outcome == REACTION_CHANGED)
			changes[n++] = (struct change){ word->conversation,
				kind, word->id, word->person };
	}
	return changes_append(tx, changes, n, NULL, err);
}

/* ---- adding ---- */

struct inserted {
	int64_t place;
	int64_t id;
};

static const struct shape inserted_shape[] = {
	SHAPE(INT, struct inserted, place, NULL),
	SHAPE(ID, struct inserted, id, NULL),
	SHAPE_END(struct inserted),
};

/* What the word comes to; new: a reaction, repeated: a later time of one. */
static void add_decide(struct reaction_word *word, const struct state *state,
    struct plan *new, struct plan *repeated)
{
	int64_t at =
	    word->at ? word->at : later(state->now, state->removed_at + 1);

	word->outcome = REACTION_STAYS;
	if (state->id) {
		word->id = state->id;
		word->created_at = state->created_at;
		if (word->at <= state->changed_at)
			return;
		plan_add(repeated, word);
		return;
	}
	if (at <= state->removed_at)
		return;
	if (state->many >= REACTIONS_EACH_MAX) {
		word->outcome = REACTION_TOO_MANY;
		return;
	}
	word->outcome = REACTION_CHANGED;
	word->at = at;
	if (!word->created_at)
		word->created_at = at;
	plan_add(new, word);
}

static bool insert(struct tx *tx, struct plan *new, struct err *err)
{
	struct rows rows;
	const struct inserted *inserted;

	if (new->count == 0)
		return true;
	if (!sql_many(tx, &SQL_reactions_insert, inserted_shape, &rows, err,
		v_ids(new->messages, new->count),
		v_ids(new->persons, new->count),
		v_texts(new->emojis, new->count),
		v_times(new->created, new->count),
		v_times(new->times, new->count)))
		return false;
	inserted = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		new->words[inserted[i].place - 1]->id = inserted[i].id;
	return tell(tx, new, "reaction_added", err);
}

bool reactions_add(
    struct tx *tx, struct reaction_word *words, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct plan all = plan_of(arena, words, count);
	struct plan new = plan_new(arena, count);
	struct plan repeated = plan_new(arena, count);
	struct rows rows;
	const struct state *states;

	if (!states_read(tx, &all, &rows, err))
		return false;
	states = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		add_decide(all.words[states[i].place - 1], &states[i], &new,
		    &repeated);
	return insert(tx, &new, err) &&
	    (repeated.count == 0 ||
		sql_none(tx, &SQL_reactions_repeat, err,
		    v_ids(repeated.ids, repeated.count),
		    v_times(repeated.times, repeated.count)));
}

/* ---- removing ---- */

static void remove_decide(
    struct reaction_word *word, const struct state *state, struct plan *gone)
{
	bool ours = word->at == 0;

	word->outcome = REACTION_STAYS;
	if (ours)
		word->at = later(state->now, state->changed_at);
	if (!state->id) {
		if (!ours && word->at > state->removed_at)
			plan_add(gone, word);
		return;
	}
	if (word->at < state->changed_at)
		return;
	word->outcome = REACTION_CHANGED;
	word->id = state->id;
	plan_add(gone, word);
}

bool reactions_remove(
    struct tx *tx, struct reaction_word *words, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct plan all = plan_of(arena, words, count);
	struct plan gone = plan_new(arena, count);
	struct rows rows;
	const struct state *states;

	if (!states_read(tx, &all, &rows, err))
		return false;
	states = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		remove_decide(
		    all.words[states[i].place - 1], &states[i], &gone);
	return gone.count == 0 ||
	    (sql_none(tx, &SQL_reactions_delete, err,
		 v_ids(gone.ids, gone.count), v_ids(gone.messages, gone.count),
		 v_ids(gone.persons, gone.count),
		 v_texts(gone.emojis, gone.count),
		 v_times(gone.times, gone.count)) &&
		tell(tx, &gone, "reaction_removed", err));
}

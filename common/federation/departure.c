#include "common/federation/departure.h"

#include "common/base/clock.h"
#include "common/chat/group.h"
#include "common/chat/profile.h"
#include "common/chat/reaction.h"
#include "common/federation/outbox_friend.h"
#include "common/federation/outbox_group.h"

#include "common/federation/departure.sql.h"

struct place {
	int64_t id;
	bool is_group; /* that he is in */
};

static const struct shape place_shape[] = {
	SHAPE(ID, struct place, id, NULL),
	SHAPE(BOOL, struct place, is_group, NULL),
	SHAPE_END(struct place),
};

/* clang-format off */
static const struct shape word_shape[] = {
	SHAPE(ID,   struct reaction_word, conversation, NULL),
	SHAPE(ID,   struct reaction_word, message, NULL),
	SHAPE(TEXT, struct reaction_word, emoji, NULL),
	SHAPE_END(struct reaction_word),
};
/* clang-format on */

struct tie {
	const char *kind;
	int64_t other;
	int64_t at;
};

static const struct shape tie_shape[] = {
	SHAPE(TEXT, struct tie, kind, NULL),
	SHAPE(ID, struct tie, other, NULL),
	SHAPE(TIME, struct tie, at, NULL),
	SHAPE_END(struct tie),
};

struct departure {
	struct tx *tx;
	const struct node *node;
	const struct user *person;
	enum departure_mode mode;
	struct rows places;
	struct rows listeners;
	int64_t now;
};

/* ---- groups ---- */

static bool hand_over(const struct departure *d, const struct outbox_group *out,
    int64_t heir, struct err *err)
{
	struct ownership change = {
		.channel = out->channel,
		.owner = heir,
		.actor = d->person->id,
	};

	return outbox_add_owner(d->tx, out, &change, err) &&
	    owners_change(d->tx, &change, 1, err);
}

static bool group_leave(
    const struct departure *d, int64_t channel, struct err *err)
{
	int64_t person = d->person->id;
	struct outbox_group out = {
		.node = d->node,
		.channel = channel,
		.except_host = d->person->home_instance,
	};
	struct membership leave = {
		.channel = channel,
		.person = person,
		.actor = person,
		.reason = "leave",
		.at = d->now,
	};
	struct group group;
	int64_t heir = 0;

	if (!group_open(d->tx, channel, person, &group, err))
		return false;
	if (group.channel.owner_id == person)
		heir = group_heir(&group, person);
	return outbox_add_leave(d->tx, &out, &leave, err) &&
	    members_leave(d->tx, &leave, 1, err) &&
	    (!heir || hand_over(d, &out, heir, err));
}

static bool groups_leave(const struct departure *d, struct err *err)
{
	const struct place *places = d->places.items;

	for (size_t i = 0; i < d->places.count; i++)
		if (places[i].is_group && !group_leave(d, places[i].id, err))
			return false;
	return true;
}

/* ---- what he wrote ---- */

static bool reactions_take(const struct departure *d, struct err *err)
{
	struct rows rows;
	struct reaction_word *words;

	if (d->mode != DEPART_FULL)
		return true;
	if (!sql_many(d->tx, &SQL_departure_reactions, word_shape, &rows, err,
		v_id(d->person->id)))
		return false;
	words = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		words[i].person = d->person->id;
	return rows.count == 0 ||
	    reactions_remove(d->tx, words, rows.count, err);
}

static bool orphans_take(const struct departure *d, struct err *err)
{
	const struct place *places = d->places.items;
	int64_t *ids =
	    arena_array(tx_arena(d->tx), d->places.count, sizeof(*ids));

	for (size_t i = 0; i < d->places.count; i++)
		ids[i] = places[i].id;
	return d->mode != DEPART_FULL || d->places.count == 0 ||
	    sql_none(d->tx, &SQL_departure_orphans, err,
		v_ids(ids, d->places.count));
}

/* ---- friends ---- */

static bool tie_end(
    const struct departure *d, const struct tie *tie, struct err *err)
{
	struct friend_news news = {
		.type = NEWS_FRIEND_REMOVE,
		.from = d->person->id,
		.to = tie->other,
		.actor = d->person->id,
		.created_at = tie->at,
		.at = d->now,
	};

	if (strcmp(tie->kind, "friend") == 0) {
		news.created_at = d->now > tie->at ? d->now : tie->at + 1;
	} else if (strcmp(tie->kind, "asked") == 0) {
		news.type = NEWS_REQUEST_CANCEL;
	} else {
		news.type = NEWS_REQUEST_UPDATE;
		news.status = "declined";
		news.from = tie->other;
		news.to = d->person->id;
	}
	return outbox_add_friend(d->tx, d->node, &news, NULL, err);
}

/* Other nodes hear it from his home only. */
static bool ties_end(const struct departure *d, struct err *err)
{
	struct rows rows;
	const struct tie *ties;

	if (d->person->home_instance)
		return true;
	if (!sql_many(d->tx, &SQL_departure_ties, tie_shape, &rows, err,
		v_id(d->person->id)))
		return false;
	ties = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		if (!tie_end(d, &ties[i], err))
			return false;
	return true;
}

/* ---- all of it ---- */

static const struct shape listener_shape[] = {
	SHAPE(ID, struct listener, person, NULL),
	SHAPE(ID, struct listener, listener, NULL),
	SHAPE_END(struct listener),
};

/* Conversations first, as everybody does, then people. */
static bool lock(struct departure *d, struct err *err)
{
	int64_t person = d->person->id;

	return sql_many(d->tx, &SQL_departure_conversations, place_shape,
		   &d->places, err, v_id(person),
		   v_bool(d->mode == DEPART_FULL)) &&
	    sql_many(d->tx, &SQL_departure_listeners, listener_shape,
		&d->listeners, err, v_id(person));
}

/* *gone: somebody was quicker. From here on nobody is. */
static bool mask(const struct departure *d, bool *gone, struct err *err)
{
	int64_t masked;

	if (!sql_count(
		d->tx, &SQL_departure_mask, &masked, err, v_id(d->person->id)))
		return false;
	*gone = masked == 0;
	return true;
}

static bool depart(const struct departure *d, struct err *err)
{
	int64_t id = d->person->id;

	return groups_leave(d, err) && reactions_take(d, err) &&
	    sql_none(d->tx, &SQL_departure_bury, err, v_id(id)) &&
	    ties_end(d, err) &&
	    sql_none(d->tx, &SQL_departure_forget, err, v_id(id)) &&
	    orphans_take(d, err) &&
	    profiles_tell(d->tx, &d->listeners, &id, 1, "user_updated", err);
}

bool person_depart(struct tx *tx, const struct node *node,
    const struct user *person, enum departure_mode mode, struct err *err)
{
	struct departure d = {
		.tx = tx,
		.node = node,
		.person = person,
		.mode = mode,
		.now = clock_wall_ms(),
	};
	bool gone;

	return lock(&d, err) && mask(&d, &gone, err) &&
	    (gone || depart(&d, err));
}

bool person_of_home(struct tx *tx, const char *host, const char *home_user_id,
    struct user *person, bool *found, struct err *err)
{
	return sql_opt(tx, &SQL_person_of_home, user_shape, person, found, err,
	    v_text(host), v_text(home_user_id));
}

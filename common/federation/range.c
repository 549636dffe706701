#include "common/federation/range.h"

#include "common/base/id.h"
#include "common/federation/range.sql.h"

/* ---- its people ---- */

static int person_order(const void *a, const void *b)
{
	const struct mention *const *left = a;
	const struct mention *const *right = b;
	int hosts = strcmp((*left)->host, (*right)->host);

	return hosts ? hosts
		     : strcmp((*left)->home_user_id, (*right)->home_user_id);
}

static bool has_actor(const struct relay_event *event)
{
	return event->actor.host && event->actor.home_user_id;
}

static struct mention **mentions_collect(
    const struct relay_range *range, size_t *count)
{
	struct mention **all;
	size_t total = 0;
	size_t next = 0;

	for (size_t i = 0; i < range->count; i++)
		total += range->events[i].people_count + 1;
	all = arena_array(tx_arena(range->tx), total, sizeof(struct mention *));
	for (size_t i = 0; i < range->count; i++) {
		struct relay_event *event = &range->events[i];

		if (event->state != EVENT_OPEN)
			continue;
		for (size_t j = 0; j < event->people_count; j++)
			all[next++] = &event->people[j];
		if (has_actor(event))
			all[next++] = &event->actor;
	}
	*count = next;
	return all;
}

static void take_text(const char **known, const char *said)
{
	if (!*known)
		*known = said;
}

/* Several events may say something of a person; nothing is overwritten. */
static void person_add(struct person *person, const struct mention *who)
{
	person->host = who->host;
	person->home_user_id = who->home_user_id;
	take_text(&person->username, who->username);
	take_text(&person->display_name, who->display_name);
	take_text(&person->avatar, who->avatar);
	take_text(&person->avatar_color, who->avatar_color);
	take_text(&person->banner, who->banner);
	take_text(&person->bio, who->bio);
}

/* Each person once, sorted: everybody takes their locks in this order. */
static void people_collect(struct relay_range *range)
{
	size_t count;
	struct mention **all = mentions_collect(range, &count);

	if (count)
		qsort(all, count, sizeof(struct mention *), person_order);
	range->people =
	    arena_array(tx_arena(range->tx), count, sizeof(*range->people));
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || person_order(&all[i - 1], &all[i]) != 0)
			range->people_count++;
		all[i]->person = &range->people[range->people_count - 1];
		person_add(all[i]->person, all[i]);
	}
}

static void admit(struct relay_range *range)
{
	for (size_t i = 0; i < range->count; i++) {
		struct relay_event *event = &range->events[i];
		struct err err = { 0 };

		if (event->state == EVENT_OPEN && event->type->admit &&
		    !event->type->admit(range, event, &err))
			event_refuse(range->batch, event, &err);
	}
}

/* Somebody for whom no row could be made, against all odds. */
static void refuse_nameless(struct relay_range *range)
{
	for (size_t i = 0; i < range->count; i++) {
		struct relay_event *event = &range->events[i];

		for (size_t j = 0;
		     j < event->people_count && event->state == EVENT_OPEN;
		     j++) {
			const struct person *p = event->people[j].person;

			if (p->wanted && !p->id)
				event_deny(range->batch, event, ERR_BUSY, NULL,
				    "no free name for a stub");
		}
	}
}

bool range_people(struct relay_range *range, bool lock, struct err *err)
{
	people_collect(range);
	if (!persons_find(range->tx, range->batch->node, range->people,
		range->people_count, err) ||
	    !range_look_at_groups(range, err))
		return false;
	admit(range);
	if (!lock)
		return true;
	if (!persons_make(range->tx, range->batch->node, &range->batch->source,
		range->people, range->people_count, err))
		return false;
	refuse_nameless(range);
	return true;
}

bool person_exists(const struct person *person, struct err *err)
{
	if (person->is_gone || (person->is_native && !person->id))
		return err_refuse(err, ERR_ABSENT, "participant_not_found",
		    "a participant is not here any more");
	return true;
}

bool homeward_allowed(
    const struct relay_batch *batch, const char *replicated_instances)
{
	return batch->homeward_any ||
	    instances_declare(
		batch->arena, replicated_instances, &batch->source);
}

bool event_may_act(const struct relay_range *range,
    const struct relay_event *event, struct err *err)
{
	const struct person *actor = event->actor.person;

	if (!person_exists(actor, err))
		return false;
	return !event->is_homeward ||
	    homeward_allowed(range->batch, actor->replicated_instances) ||
	    err_set(err, ERR_ATTRIBUTION,
		"our person has no account declared there");
}

/* ---- its messages ---- */

/* clang-format off */
static const struct shape message_shape[] = {
	SHAPE(TEXT, struct known_message, host, NULL),
	SHAPE(TEXT, struct known_message, birth_id, NULL),
	SHAPE(ID,   struct known_message, id, NULL),
	SHAPE(ID,   struct known_message, dm_channel_id, NULL),
	SHAPE(ID,   struct known_message, user_id, NULL),
	SHAPE(TEXT, struct known_message, home_instance, NULL),
	SHAPE(TEXT, struct known_message, home_user_id, NULL),
	SHAPE(TEXT, struct known_message, replicated_instances, NULL),
	SHAPE_END(struct known_message),
};
/* clang-format on */

struct births {
	const char **hosts, **ids;
	size_t count;
	int64_t *ours;
	size_t ours_count;
};

static struct births births_of(const struct relay_range *range)
{
	struct arena *arena = tx_arena(range->tx);
	struct births b = {
		.hosts = arena_array(arena, range->count, sizeof(char *)),
		.ids = arena_array(arena, range->count, sizeof(char *)),
		.ours = arena_array(arena, range->count, sizeof(int64_t)),
	};

	for (size_t i = 0; i < range->count; i++) {
		const struct relay_event *event = &range->events[i];

		if (event->state != EVENT_OPEN || !event->about_id)
			continue;
		if (event->about_host == range->batch->node->origin.host ||
		    event->about_ours)
			b.ours[b.ours_count++] = id_parse(event->about_id);
		if (event->about_host == range->batch->node->origin.host)
			continue;
		b.hosts[b.count] = event->about_host;
		b.ids[b.count++] = event->about_id;
	}
	return b;
}

static void take_messages(struct relay_range *range, const struct rows *rows)
{
	const char *ours = range->batch->node->origin.host;
	const struct known_message *found = rows->items;

	for (size_t i = 0; i < rows->count; i++) {
		struct known_message *m =
		    &range->messages[range->message_count++];

		*m = found[i];
		if (!m->host)
			m->host = ours;
	}
}

/* Of those that nobody knows by that name yet. */
static struct births births_unknown(const struct relay_range *range)
{
	struct arena *arena = tx_arena(range->tx);
	struct births b = {
		.hosts = arena_array(arena, range->count, sizeof(char *)),
		.ids = arena_array(arena, range->count, sizeof(char *)),
	};

	for (size_t i = 0; i < range->count; i++) {
		const struct relay_event *event = &range->events[i];

		if (event->state != EVENT_OPEN || !event->about_any_name ||
		    range_message(range, event->about_host, event->about_id))
			continue;
		b.hosts[b.count] = event->about_host;
		b.ids[b.count++] = event->about_id;
	}
	return b;
}

static bool find_aliased(struct relay_range *range, struct err *err)
{
	struct births births = births_unknown(range);
	struct rows rows;

	if (births.count == 0)
		return true;
	if (!sql_many(range->tx, &SQL_messages_aliased, message_shape, &rows,
		err, v_texts(births.hosts, births.count),
		v_texts(births.ids, births.count)))
		return false;
	take_messages(range, &rows);
	return true;
}

bool range_messages(struct relay_range *range, struct err *err)
{
	const struct relay_batch *batch = range->batch;
	struct births births = births_of(range);
	struct rows rows = { 0 };

	if (births.count + births.ours_count &&
	    !sql_many(range->tx, &SQL_messages_known, message_shape, &rows, err,
		v_texts(births.hosts, births.count),
		v_texts(births.ids, births.count),
		v_ids(births.ours, births.ours_count),
		v_text(batch->source.text), v_text(batch->source.host)))
		return false;
	/* Aliases may name one of them twice. */
	range->messages = arena_array(tx_arena(range->tx),
	    rows.count + 2 * range->count, sizeof(*range->messages));
	take_messages(range, &rows);
	return find_aliased(range, err);
}

struct known_message *range_message(
    const struct relay_range *range, const char *host, const char *birth_id)
{
	for (size_t i = 0; birth_id && i < range->message_count; i++)
		if (strcmp(range->messages[i].birth_id, birth_id) == 0 &&
		    strcmp(range->messages[i].host, host) == 0)
			return &range->messages[i];
	return NULL;
}

void range_add_message(
    struct relay_range *range, const struct known_message *message)
{
	range->messages[range->message_count++] = *message;
}

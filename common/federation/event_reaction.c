#include "common/federation/event_reaction.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/chat/reaction.h"
#include "common/federation/outbox_reaction.h"

/* What an event says besides who and about what. */
struct said {
	const char *emoji;
	int64_t at; /* by the clock of who said it */
};

/* ---- reading ---- */

static bool missing(struct err *err, const char *what)
{
	return err_refuse(
	    err, ERR_INVALID, "missing_reaction_payload", "%s", what);
}

/* The member of the event or of the reaction; 0: none that is one. */
static int64_t time_of(const struct json *value, const char *name)
{
	int64_t ms;

	return json_whole(json_member(value, name), &ms) && ms > 0 ? ms : 0;
}

/* Without a message id of its own it is about the one of the event. */
static bool about_read(const struct relay_batch *batch,
    struct relay_event *event, const struct json *reaction, struct err *err)
{
	const char *id = json_string(json_member(reaction, "messageId"));
	const char *instance =
	    json_string(json_member(reaction, "messageHomeInstance"));

	if (!id)
		id = event->message_id;
	if (!id || !*id || json_units(id) > HOME_USER_ID_MAX)
		return missing(err, "no message is named");
	event->about_host =
	    instance ? batch_host(batch, instance) : batch->source.host;
	if (!event->about_host)
		return err_set(err, ERR_ABSENT, "no node of that name");
	event->about_id = arena_text(batch->arena, id);
	event->about_any_name = true;
	return true;
}

static bool reaction_read(const struct relay_batch *batch,
    struct relay_event *event, struct said *said, struct err *err)
{
	const struct json *reaction = json_member(event->value, "reaction");
	const char *person = json_string(json_member(reaction, "homeUserId"));
	const char *emoji = json_string(json_member(reaction, "emoji"));

	if (json_type(reaction) != JSON_OBJECT)
		return missing(err, "no reaction");
	if (!event_attribute(batch, event, person,
		json_string(json_member(reaction, "homeInstance")), err))
		return false;
	if (!person || !*person || json_units(person) > HOME_USER_ID_MAX)
		return missing(err, "nobody reacts");
	if (!emoji || !emoji_is_usable(emoji))
		return missing(err, "no usable emoji");
	said->emoji = arena_text(batch->arena, emoji);
	event->detail = said;
	return about_read(batch, event, reaction, err);
}

bool reaction_add_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	struct said *said = ARENA_NEW(batch->arena, struct said);

	said->at = time_of(json_member(event->value, "reaction"), "createdAt");
	if (!said->at)
		said->at = time_of(event->value, "timestamp");
	if (!said->at)
		said->at = clock_wall_ms();
	return reaction_read(batch, event, said, err);
}

bool reaction_remove_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	struct said *said = ARENA_NEW(batch->arena, struct said);

	said->at = time_of(event->value, "timestamp");
	if (!said->at)
		said->at = clock_wall_ms();
	return reaction_read(batch, event, said, err);
}

/* ---- who may ---- */

static bool is_here(const struct relay_event *event)
{
	const struct person *person = event->actor.person;

	return person->id && !person->is_gone;
}

bool reaction_add_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	/* Whom nobody knows matters only if the message is here. */
	return !is_here(event) || event_may_act(range, event, err);
}

bool reaction_remove_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	if (is_here(event))
		return event_may_act(range, event, err);
	event_accept(event);
	return true;
}

/* ---- applying ---- */

/* The words of a run, and whose events they are. */
struct spoken {
	struct reaction_word *words;
	struct relay_event **events;
	size_t count;
};

static struct spoken spoken_new(const struct relay_range *run)
{
	struct arena *arena = tx_arena(run->tx);

	return (struct spoken){
		.words = arena_array(
		    arena, run->count, sizeof(struct reaction_word)),
		.events = arena_array(
		    arena, run->count, sizeof(struct relay_event *)),
	};
}

static void speak(struct spoken *spoken, struct relay_event *event,
    const struct known_message *about, int64_t shown_at)
{
	const struct said *said = event->detail;

	spoken->events[spoken->count] = event;
	spoken->words[spoken->count++] = (struct reaction_word){
		.conversation = about->dm_channel_id,
		.message = about->id,
		.person = event->actor.person->id,
		.emoji = said->emoji,
		.at = said->at,
		.created_at = shown_at,
	};
}

/* What came homeward goes on under our names, never back. */
static bool send_on(struct relay_range *run, const struct spoken *spoken,
    const char *event_type, struct err *err)
{
	for (size_t i = 0; i < spoken->count; i++)
		if (spoken->events[i]->is_homeward &&
		    !outbox_add_reaction(run->tx, run->batch->node, event_type,
			&spoken->words[i], run->batch->source.host, err))
			return false;
	return true;
}

static void refuse_unknown(
    const struct relay_range *run, struct relay_event *event)
{
	event_deny(run->batch, event, ERR_ABSENT, "unknown_message",
	    "no such message here");
}

/* Settles what needs no word. */
static void add_stage(
    struct relay_range *run, struct relay_event *event, struct spoken *spoken)
{
	const struct known_message *about =
	    range_message(run, event->about_host, event->about_id);
	const struct said *said = event->detail;
	const struct conversation *c;

	if (!about) {
		refuse_unknown(run, event);
		return;
	}
	if (about->id && !is_here(event)) {
		event_deny(run->batch, event, ERR_ABSENT, "user_not_found",
		    "nobody we know");
		return;
	}
	event_accept(event);
	if (!about->id)
		return;
	c = range_conversation_by_id(run, about->dm_channel_id);
	if (!c || c->is_gone)
		return;
	if (range_is_member(run, c, event->actor.person->id))
		speak(spoken, event, about, time_capped(said->at));
	else
		event_deny(run->batch, event, ERR_FORBIDDEN,
		    "unauthorized_source", "who reacts is not in there");
}

static void add_settle(struct relay_range *run, const struct spoken *spoken)
{
	for (size_t i = 0; i < spoken->count; i++) {
		if (spoken->words[i].outcome == REACTION_NO_MESSAGE)
			refuse_unknown(run, spoken->events[i]);
		else if (spoken->words[i].outcome == REACTION_TOO_MANY)
			event_deny(run->batch, spoken->events[i], ERR_INVALID,
			    "invalid_reaction", "too many of one person");
	}
}

bool reaction_add_apply(struct relay_range *run, struct err *err)
{
	struct spoken spoken = spoken_new(run);

	for (size_t i = 0; i < run->count; i++)
		if (run->events[i].state == EVENT_OPEN)
			add_stage(run, &run->events[i], &spoken);
	if (spoken.count == 0)
		return true;
	if (!reactions_add(run->tx, spoken.words, spoken.count, err))
		return false;
	add_settle(run, &spoken);
	return send_on(run, &spoken, "reaction_add", err);
}

/* Who has left may still take away what is his. */
bool reaction_remove_apply(struct relay_range *run, struct err *err)
{
	struct spoken spoken = spoken_new(run);

	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];
		const struct known_message *about;

		if (event->state != EVENT_OPEN)
			continue;
		about = range_message(run, event->about_host, event->about_id);
		event_accept(event);
		if (about && about->id)
			speak(&spoken, event, about, 0);
	}
	return spoken.count == 0 ||
	    (reactions_remove(run->tx, spoken.words, spoken.count, err) &&
		send_on(run, &spoken, "reaction_remove", err));
}

#include "common/federation/event_friend.h"

#include "common/chat/friend.h"
#include "common/federation/outbox_friend.h"

/* What a friend event says beyond its two people. */
struct said {
	int64_t at;	     /* of the request, the friendship or its end */
	int64_t happened_at; /* of the event */
	const char *status;  /* of an update */
};

enum { FROM, TO, BOTH };

/* ---- reading ---- */

static bool refuse_payload(struct err *err, const char *why)
{
	return err_refuse(
	    err, ERR_INVALID, "missing_friendship_payload", "%s", why);
}

static const char *text_of(const struct json *value, const char *name)
{
	const char *text = json_string(json_member(value, name));

	return text && *text ? text : NULL;
}

static bool person_read(const struct relay_batch *batch,
    const struct json *friendship, const char *name, const char *profile_name,
    struct mention *who)
{
	const struct json *value = json_member(friendship, name);
	const struct json *profile = json_member(friendship, profile_name);
	const char *instance = json_string(json_member(value, "homeInstance"));

	who->home_user_id = text_of(value, "homeUserId");
	who->host = instance ? batch_host(batch, instance) : NULL;
	who->username = text_of(profile, "username");
	who->display_name = text_of(profile, "displayName");
	who->avatar = text_of(profile, "avatar");
	who->avatar_color = text_of(profile, "avatarColor");
	who->banner = text_of(profile, "banner");
	who->bio = text_of(profile, "bio");
	return who->home_user_id &&
	    json_units(who->home_user_id) <= HOME_USER_ID_MAX;
}

static int64_t time_said(const struct json *value, const char *name)
{
	int64_t ms;

	return time_of_peer(json_whole(json_member(value, name), &ms) ? ms : 0);
}

static bool attribute(const struct relay_batch *batch,
    struct relay_event *event, const struct mention *actor, struct err *err)
{
	return event_attribute(
	    batch, event, actor->home_user_id, actor->host, err);
}

/* actor BOTH: whichever of them is at home where this comes from. */
static bool friendship_read(const struct relay_batch *batch,
    struct relay_event *event, int actor, struct err *err)
{
	const struct json *value = json_member(event->value, "friendship");
	struct mention *people =
	    arena_array(batch->arena, BOTH, sizeof(*people));
	struct said *said = ARENA_NEW(batch->arena, struct said);

	if (json_type(value) != JSON_OBJECT)
		return refuse_payload(err, "no friendship");
	if (!person_read(batch, value, "from", "fromProfile", &people[FROM]) ||
	    !person_read(batch, value, "to", "toProfile", &people[TO]))
		return refuse_payload(err, "a friendship with nobody");
	if (actor == BOTH)
		actor = people[FROM].host != batch->source.host &&
			people[TO].host == batch->source.host
		    ? TO
		    : FROM;
	if (!attribute(batch, event, &people[actor], err))
		return false;
	if (!people[FROM].host || !people[TO].host)
		return refuse_payload(err, "somebody is at home nowhere");
	if (strcmp(people[FROM].host, people[TO].host) == 0 &&
	    strcmp(people[FROM].home_user_id, people[TO].home_user_id) == 0)
		return err_refuse(err, ERR_INVALID, "self_target_invalid",
		    "a friend of himself");
	said->at = time_said(value, "createdAt");
	said->happened_at = time_said(event->value, "timestamp");
	said->status = text_of(value, "status");
	event->people = people;
	event->people_count = BOTH;
	event->place = PLACE_FRIENDS;
	event->detail = said;
	return true;
}

bool friend_create_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	return friendship_read(batch, event, FROM, err);
}

static bool is_accepted(const struct said *said)
{
	return strcmp(said->status, "accepted") == 0;
}

bool friend_update_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct said *said;

	if (!friendship_read(batch, event, TO, err))
		return false;
	said = event->detail;
	return (said->status &&
		   (is_accepted(said) ||
		       strcmp(said->status, "declined") == 0)) ||
	    refuse_payload(err, "neither accepted nor declined");
}

bool friend_cancel_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	return friendship_read(batch, event, FROM, err);
}

bool friend_add_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	return friendship_read(batch, event, TO, err);
}

bool friend_remove_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	return friendship_read(batch, event, BOTH, err);
}

/* ---- who must be here ---- */

static bool want_both(struct relay_event *event)
{
	event->people[FROM].person->wanted = true;
	event->people[TO].person->wanted = true;
	return true;
}

/* Nothing of ours: told yes, or it would be repeated. */
static bool pass_over(struct relay_event *event)
{
	event_accept(event);
	return true;
}

static bool is_here(const struct person *person)
{
	return person->id && !person->is_gone;
}

bool friend_create_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct person *to = event->people[TO].person;

	if (!event_may_act(range, event, err))
		return false;
	if (to->is_gone || (to->is_native ? !to->id : !event->is_homeward))
		return err_refuse(err, ERR_ABSENT, "recipient_not_found",
		    "the asked person is not here");
	return want_both(event);
}

bool friend_update_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct person *from = event->people[FROM].person;

	if (!event_may_act(range, event, err))
		return false;
	if (from->is_native && !from->id)
		return err_refuse(err, ERR_ABSENT, "sender_not_found",
		    "whoever asked is not here");
	if (!person_exists(from, err))
		return false;
	if (!from->is_native && !event->is_homeward)
		return pass_over(event);
	return want_both(event);
}

/* Also before its request: it must not come back behind it. */
bool friend_cancel_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct person *from = event->people[FROM].person;
	const struct person *to = event->people[TO].person;

	if (from->is_gone || to->is_gone ||
	    (to->is_native ? !to->id : !event->is_homeward))
		return pass_over(event);
	return event_may_act(range, event, err) && want_both(event);
}

bool friend_add_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct person *from = event->people[FROM].person;

	if (!event_may_act(range, event, err) || !person_exists(from, err))
		return false;
	if (!from->is_native && !event->is_homeward)
		return pass_over(event);
	return want_both(event);
}

bool friend_remove_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	if (!is_here(event->people[FROM].person) ||
	    !is_here(event->people[TO].person))
		return pass_over(event);
	return event_may_act(range, event, err);
}

/* ---- the pairs ---- */

static int64_t person_of(const struct relay_event *event, int which)
{
	return event->people[which].person->id;
}

static bool is_of(
    const struct friend_pair *pair, const struct relay_event *event)
{
	int64_t from = person_of(event, FROM);
	int64_t to = person_of(event, TO);

	return (pair->low == from && pair->high == to) ||
	    (pair->low == to && pair->high == from);
}

static struct friend_pair *pair_find(
    struct friend_pair *pairs, size_t count, const struct relay_event *event)
{
	for (size_t i = 0; i < count; i++)
		if (is_of(&pairs[i], event))
			return &pairs[i];
	return NULL;
}

bool range_friends(struct relay_range *range, struct err *err)
{
	struct friend_pair *pairs =
	    arena_array(tx_arena(range->tx), range->count, sizeof(*pairs));
	size_t count = 0;

	for (size_t i = 0; i < range->count; i++) {
		const struct relay_event *event = &range->events[i];

		if (event->state == EVENT_OPEN &&
		    event->place == PLACE_FRIENDS &&
		    !pair_find(pairs, count, event))
			pairs[count++] = friend_pair_of(
			    person_of(event, FROM), person_of(event, TO));
	}
	range->friends = pairs;
	range->friend_count = count;
	return friends_lock(range->tx, pairs, count, err);
}

/* ---- a run ---- */

struct settled {
	struct relay_range *run;
	const struct relay_event *event;
	const struct friend_pair *pair;
	enum friend_outcome outcome;
};

typedef enum friend_outcome decide_fn(
    struct friend_pair *pair, const struct relay_event *event);
typedef bool after_fn(const struct settled *settled, struct err *err);

static struct friend_pair *pairs_of(
    const struct relay_range *run, size_t *count)
{
	struct friend_pair *pairs =
	    arena_array(tx_arena(run->tx), run->count, sizeof(*pairs));

	*count = 0;
	for (size_t i = 0; i < run->count; i++) {
		const struct relay_event *event = &run->events[i];

		if (event->state == EVENT_OPEN &&
		    !pair_find(pairs, *count, event))
			pairs[(*count)++] =
			    *pair_find(run->friends, run->friend_count, event);
	}
	return pairs;
}

static bool apply(struct relay_range *run, decide_fn *decide, after_fn *after,
    struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	size_t count;
	struct friend_pair *pairs = pairs_of(run, &count);
	struct settled *done = arena_array(arena, run->count, sizeof(*done));
	size_t n = 0;

	if (!friends_read(run->tx, pairs, count, err))
		return false;
	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];
		struct friend_pair *pair;

		if (event->state != EVENT_OPEN)
			continue;
		pair = pair_find(pairs, count, event);
		done[n++] =
		    (struct settled){ run, event, pair, decide(pair, event) };
		event_accept(event);
	}
	if (!friends_write(run->tx, pairs, count, err))
		return false;
	for (size_t i = 0; i < n; i++)
		if (done[i].outcome != FRIEND_SAME && !after(&done[i], err))
			return false;
	return true;
}

/* ---- what others must hear of it ---- */

static bool announce(const struct settled *settled,
    const struct friend_news *news, const char *except, struct err *err)
{
	return outbox_add_friend(
	    settled->run->tx, settled->run->batch->node, news, except, err);
}

static struct friend_news news_of(
    const struct settled *settled, enum friend_news_type type, int actor)
{
	const struct said *said = settled->event->detail;

	return (struct friend_news){
		.type = type,
		.from = person_of(settled->event, FROM),
		.to = person_of(settled->event, TO),
		.actor = person_of(settled->event, actor),
		.status = said->status,
		.created_at = said->at,
		.at = said->happened_at,
	};
}

/* One of our people has acted elsewhere: the other's home hears it from us,
 * once, unless it has told us. */
static bool send_on(
    const struct settled *settled, struct friend_news news, struct err *err)
{
	return !settled->event->is_homeward ||
	    announce(settled, &news, settled->run->batch->source.host, err);
}

static bool announce_friendship(const struct settled *settled,
    struct friend_news news, const char *except, struct err *err)
{
	news.type = NEWS_FRIEND_ADD;
	news.status = NULL;
	news.created_at = settled->pair->is.since;
	return announce(settled, &news, except, err);
}

/* The request of the other side, which the one who is at home here accepts. */
static bool announce_crossed(const struct settled *settled, struct err *err)
{
	const struct relay_event *event = settled->event;
	const struct said *said = event->detail;
	const struct friend_state *was = &settled->pair->was;
	int ours = event->is_homeward ? FROM : TO;
	struct friend_news news = {
		.type = NEWS_REQUEST_UPDATE,
		.from = person_of(event, ours == TO ? FROM : TO),
		.to = person_of(event, ours),
		.actor = person_of(event, ours),
		.status = "accepted",
		.created_at =
		    event->is_homeward && was->asker ? was->asked_at : said->at,
		.at = settled->pair->is.since,
	};

	return announce(settled, &news, NULL, err) &&
	    announce_friendship(settled, news, NULL, err);
}

/* ---- create ---- */

static enum friend_outcome ask(
    struct friend_pair *pair, const struct relay_event *event)
{
	const struct said *said = event->detail;

	return friend_ask(pair, person_of(event, FROM), said->at);
}

static bool asked(const struct settled *settled, struct err *err)
{
	if (settled->outcome == FRIEND_CROSSED)
		return announce_crossed(settled, err);
	return send_on(
	    settled, news_of(settled, NEWS_REQUEST_CREATE, FROM), err);
}

bool friend_create_apply(struct relay_range *run, struct err *err)
{
	return apply(run, ask, asked, err);
}

/* ---- update ---- */

static enum friend_outcome answer(
    struct friend_pair *pair, const struct relay_event *event)
{
	const struct said *said = event->detail;
	int64_t asker = person_of(event, FROM);

	return is_accepted(said)
	    ? friend_accept(pair, asker, said->at, said->happened_at)
	    : friend_decline(pair, asker, said->at);
}

static bool answered(const struct settled *settled, struct err *err)
{
	struct friend_news news = news_of(settled, NEWS_REQUEST_UPDATE, TO);

	if (!send_on(settled, news, err))
		return false;
	return !settled->event->is_homeward || !settled->pair->is.since ||
	    announce_friendship(
		settled, news, settled->run->batch->source.host, err);
}

bool friend_update_apply(struct relay_range *run, struct err *err)
{
	return apply(run, answer, answered, err);
}

/* ---- cancel ---- */

static enum friend_outcome withdraw(
    struct friend_pair *pair, const struct relay_event *event)
{
	const struct said *said = event->detail;

	return friend_withdraw(pair, person_of(event, FROM), said->at);
}

static bool withdrawn(const struct settled *settled, struct err *err)
{
	return send_on(
	    settled, news_of(settled, NEWS_REQUEST_CANCEL, FROM), err);
}

bool friend_cancel_apply(struct relay_range *run, struct err *err)
{
	return apply(run, withdraw, withdrawn, err);
}

/* ---- friend_add ---- */

static enum friend_outcome begin(
    struct friend_pair *pair, const struct relay_event *event)
{
	const struct said *said = event->detail;

	/* Homeward, our person has accepted: he need not have asked. */
	return friend_begin(
	    pair, person_of(event, FROM), said->at, event->is_homeward);
}

/* Nobody here has asked for it, or has withdrawn meanwhile: it ends. */
static bool announce_unasked(const struct settled *settled, struct err *err)
{
	struct friend_news news = news_of(settled, NEWS_FRIEND_REMOVE, FROM);

	news.status = NULL;
	news.created_at = news.at = settled->pair->is.ended_at;
	return announce(settled, &news, NULL, err);
}

static bool begun(const struct settled *settled, struct err *err)
{
	if (settled->outcome == FRIEND_UNASKED)
		return announce_unasked(settled, err);
	return send_on(settled, news_of(settled, NEWS_FRIEND_ADD, TO), err);
}

bool friend_add_apply(struct relay_range *run, struct err *err)
{
	return apply(run, begin, begun, err);
}

/* ---- friend_remove ---- */

static enum friend_outcome end(
    struct friend_pair *pair, const struct relay_event *event)
{
	const struct said *said = event->detail;

	return friend_end(pair, said->at);
}

static bool ended(const struct settled *settled, struct err *err)
{
	const struct relay_event *event = settled->event;
	int actor =
	    event->actor.person == event->people[FROM].person ? FROM : TO;

	return send_on(
	    settled, news_of(settled, NEWS_FRIEND_REMOVE, actor), err);
}

bool friend_remove_apply(struct relay_range *run, struct err *err)
{
	return apply(run, end, ended, err);
}

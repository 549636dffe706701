/*
 * range -- the part of a batch that one transaction applies.
 *
 * Before any event is applied everything that the range's events speak of is
 * looked up and locked, with a fixed number of statements and always in the
 * same order: people by identity, messages, conversations by id. So two
 * batches never wait for each other in a circle. Events of one batch build on
 * one another (a group is made, then written to): whoever makes or removes
 * something tells the range, and whoever needs something asks it when he
 * applies, not before.
 *
 * A run is the range while only some consecutive events of it count (events,
 * count); everything else is the range's.
 *
 * Worker threads; all of it lives in the transaction's arena. Pointers to
 * conversations are good until the next range_add_conversation.
 */
#ifndef POSTRIDER_RANGE_H
#define POSTRIDER_RANGE_H

#include "common/federation/batch.h"

/* A message that is here, or was. */
struct known_message {
	const char *host; /* where it was born; ours for our own */
	const char *birth_id;
	int64_t id; /* 0: deleted, only its tombstone is left */
	int64_t dm_channel_id;
	int64_t user_id;
	const char *home_instance; /* of the author; NULL: one of our people */
	const char *home_user_id;
	const char *replicated_instances;
};

struct conversation {
	int64_t id;
	bool is_group;
	bool is_gone; /* its last member has left */
	int64_t owner_id;
	const char *owner_host; /* of a group; NULL: one of our people */
	int64_t pair_low;
	int64_t pair_high;
	const char *federated_id;
	int64_t known_since; /* ms; when its row was made here */
};

/* Of a group. */
struct member {
	int64_t dm_channel_id;
	int64_t user_id;
	const char *host; /* NULL: one of our people */
	bool is_stub;
};

struct relay_range {
	struct tx *tx;
	const struct relay_batch *batch;
	struct relay_event *events;
	size_t count;
	struct person *people;
	size_t people_count;
	struct known_message *messages;
	size_t message_count;
	struct conversation *conversations;
	size_t conversation_count, conversation_room;
	struct member *members;
	size_t member_count, member_room;
	struct friend_pair *friends; /* locked */
	size_t friend_count;
};

/* Ours or with an account here. */
static inline bool person_is_here(const struct person *person)
{
	return person->id && (person->is_native || !person->is_stub);
}

/* The steps, in this order. Without lock (ephemeral events) rows are only
 * read, and nobody and nothing is made. */
MUST_CHECK bool range_people(
    struct relay_range *range, bool lock, struct err *err);
/* Groups that events may make, without locks: what admit goes by. */
MUST_CHECK bool range_look_at_groups(
    struct relay_range *range, struct err *err);
MUST_CHECK bool range_messages(struct relay_range *range, struct err *err);
MUST_CHECK bool range_conversations(
    struct relay_range *range, bool lock, struct err *err);

/* ---- for the types ---- */

/* May the peer speak for one of our people, who has declared these accounts?
 * Everything that came homeward asks here (homeward_scope). */
bool homeward_allowed(
    const struct relay_batch *batch, const char *replicated_instances);

/* May the actor act at all: he exists, and if he is ours, an account of his is
 * declared at the peer that speaks. */
bool event_may_act(const struct relay_range *range,
    const struct relay_event *event, struct err *err);
/* The person must not be gone, and one of ours must exist. */
bool person_exists(const struct person *person, struct err *err);

/* What it is about; NULL: never heard of. Room for more is only there for as
 * many as the range has events. */
struct known_message *range_message(
    const struct relay_range *range, const char *host, const char *birth_id);
void range_add_message(
    struct relay_range *range, const struct known_message *message);

/* Where the event belongs; NULL: not here. */
const struct conversation *range_conversation(
    const struct relay_range *range, const struct relay_event *event);
const struct conversation *range_conversation_by_id(
    const struct relay_range *range, int64_t id);
void range_add_conversation(
    struct relay_range *range, const struct conversation *conversation);

/* Is the person in it? Groups by their members, pairs by their two. */
bool range_is_member(const struct relay_range *range,
    const struct conversation *conversation, int64_t person);
size_t range_member_count(
    const struct relay_range *range, int64_t conversation);
/* A group in which nobody is at home or has an account here: others change it
 * without telling us. */
bool range_is_abandoned(
    const struct relay_range *range, const struct conversation *conversation);
/* Has the node that speaks somebody in the group, or its owner? */
bool range_has_stake(
    const struct relay_range *range, const struct conversation *conversation);
void range_add_member(struct relay_range *range, int64_t conversation,
    const struct person *person);
void range_drop_member(
    struct relay_range *range, int64_t conversation, int64_t person);
/* Of a group, after its owner or whether it is gone has changed. */
void range_set_conversation(
    struct relay_range *range, const struct conversation *conversation);

#endif

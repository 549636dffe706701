/*
 * channel -- conversations and their members.
 *
 * A pair is found by exactly its two people (pair_low, pair_high) and its
 * membership never changes; its federated id is the hash of the two canonical
 * user ids. Every change takes the conversation's row lock, the next seq and
 * appends to conversation_events (channel_event), in its own transaction.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_CHANNEL_H
#define POSTRIDER_CHANNEL_H

#include "common/chat/user.h"

enum { FEDERATED_ID_SIZE = 33 };

struct channel {
	int64_t id;
	int64_t owner_id;
	const char *federated_id;
	bool is_group;
	int64_t pair_low;
	int64_t pair_high;
	int64_t seq;
	int64_t created_at;
};

extern const struct shape channel_shape[];

/* First 32 hex digits of SHA-256 over the two ids, sorted as text and joined
 * with ":" (specification, section 4). */
void federated_id_of_pair(
    const char *a, const char *b, char id[FEDERATED_ID_SIZE]);

/* ERR_FORBIDDEN for a stranger and for a channel that isn't there. */
MUST_CHECK bool channel_check_member(struct tx *tx, int64_t channel,
    int64_t user, struct channel *found, struct err *err);

/* Finds or makes the pair of two living people; clears closed for opener.
 * A channel that is made gets a "channel_created" event. */
MUST_CHECK bool channel_open_pair(struct tx *tx, const struct user *opener,
    const struct user *other, struct channel *channel, bool *created,
    struct err *err);

/* The same for many pairs that nobody has found: makes those that are still
 * missing. Whoever calls looks again for the ids. */
struct channel_pair {
	int64_t low;
	int64_t high;
	int64_t opener;
	const char *federated_id;
};
MUST_CHECK bool channels_make_pairs(struct tx *tx,
    const struct channel_pair *pairs, size_t count, struct err *err);

/* A pair that was nobody else's business so far gets its federated id. */
MUST_CHECK bool channel_name_pair(
    struct tx *tx, int64_t channel, const char *federated_id, struct err *err);

MUST_CHECK bool channel_close_for(
    struct tx *tx, int64_t channel, int64_t user, struct err *err);

/* Lock, next seq, event, signal. kind: message_created, message_updated,
 * message_deleted, channel_created, ... */
MUST_CHECK bool channel_event(struct tx *tx, int64_t channel, const char *kind,
    int64_t entity, int64_t actor, int64_t *seq, struct err *err);

/* A line of GET /api/conversations/:id/events. */
struct conversation_event {
	int64_t seq;
	const char *kind;
	int64_t entity_id;
	int64_t actor_id;
	int64_t at;
	int64_t message_id; /* of a reaction that is or was there */
};
extern const struct shape conversation_event_shape[];

struct event_page {
	struct rows events;
	int64_t seq; /* of the conversation now */
	bool has_more;
	bool gone; /* since lies before what is kept: 410 */
};
MUST_CHECK bool channel_events_since(struct tx *tx, int64_t channel,
    int64_t since, int64_t limit, struct event_page *page, struct err *err);

/* The DmChannel objects of the client API: one, or all open ones of a user
 * (newest activity first), as JSON text in the arena. */
MUST_CHECK bool channel_json(struct tx *tx, int64_t channel, bool federated_id,
    const char **json, struct err *err);
MUST_CHECK bool channel_list_json(
    struct tx *tx, int64_t user, const char **json, struct err *err);

#endif

/*
 * batch -- an inbound batch while it is applied.
 *
 * Parsing reads every event once, without the database: form, attribution by
 * host, texts. What is wrong there refuses the event (malformed) for good. An
 * application then settles each of the other events, accepted or refused; it
 * may be repeated after a rollback (batch_reopen).
 *
 * A range is the part of a batch that one transaction applies.
 */
#ifndef POSTRIDER_BATCH_H
#define POSTRIDER_BATCH_H

#include "common/chat/message.h"
#include "common/federation/node.h"
#include "common/federation/peer.h"
#include "common/federation/person.h"

struct relay_event;
struct relay_batch;
struct relay_range;

/* Durable events must be in the database before "accepted" leaves. */
struct event_type {
	const char *name;
	const char *context;
	enum event_life { EVENT_DURABLE, EVENT_EPHEMERAL } life;
	/* Without the database; false refuses the event. */
	bool (*read)(const struct relay_batch *batch, struct relay_event *event,
	    struct err *err);
	/* Settles all open events of a run of this type. */
	bool (*apply)(struct relay_range *run, struct err *err);
};

enum event_state { EVENT_MALFORMED, EVENT_OPEN, EVENT_ACCEPTED, EVENT_REFUSED };

/* Somebody an event names. */
struct mention {
	const char *host;
	const char *home_user_id;
	const char *username;
	const char *display_name;
	const char *avatar;
	const char *avatar_color;
	struct person *person; /* of the range, once resolved */
};

struct relay_event {
	const struct event_type *type;
	const struct json *value;
	const struct json *id; /* echoed as it came; NULL: absent */
	const char *message_id;
	enum event_state state;
	const char *reason; /* static */
	const char *why;    /* for the log */
	enum err_code code;

	const char *federated_id;
	struct mention actor;
	bool is_homeward; /* the actor is one of our people */
	struct mention *participants;
	size_t participant_count;

	bool has_message;
	const char *content;
	int64_t created_at;
	int64_t edited_at;
	struct attachment *files;
	size_t file_count;

	int64_t channel; /* once found */
};

struct relay_batch {
	struct arena *arena;
	const struct node *node;
	const struct peer *peer;
	struct origin source;
	struct relay_event *events;
	size_t count;
	int64_t max_upload_size; /* once applied */
};

/* A message that this peer has told us about before. */
struct known_message {
	const char *source_message_id;
	int64_t id; /* 0: deleted, only its tombstone is left */
	int64_t dm_channel_id;
	int64_t user_id;
	const char *home_instance;
	const char *home_user_id;
	const char *replicated_instances;
};

struct relay_range {
	struct tx *tx;
	const struct relay_batch *batch;
	struct relay_event *events;
	size_t count;
	struct person *people;
	size_t people_count;
	struct known_message *known;
	size_t known_count;
	struct rows conversations;
};

/* Open again, but for the malformed. */
void events_reopen(struct relay_event *events, size_t count);
void event_accept(struct relay_event *event);
/* Settles with err's reason; err is spent. */
void event_refuse(const struct relay_batch *batch, struct relay_event *event,
    const struct err *err);

/* Whose event is it: the actor's host must be the peer's, or ours. */
MUST_CHECK bool event_attribute(const struct relay_batch *batch,
    struct relay_event *event, const char *home_user_id,
    const char *home_instance, struct err *err);

/* The normal host of an instance that this batch names; NULL: none, or a
 * port that the peer or we don't have. */
const char *batch_host(const struct relay_batch *batch, const char *instance);

/* A time that a peer claims: beyond the tolerated skew it is now. */
int64_t time_capped(int64_t ms);

#endif

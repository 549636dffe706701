/*
 * batch -- an inbound batch while it is applied.
 *
 * Parsing reads every event once, without the database: form, attribution by
 * host, texts. What is wrong there refuses the event (malformed) for good. An
 * application then settles each of the other events, accepted or refused; it
 * may be repeated after a rollback (batch_reopen).
 *
 * A range is the part of a batch that one transaction applies (range.h).
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
	/* The people it names are looked up: who of them must get a row
	 * (person->wanted)? Locks nothing; false refuses the event. May accept
	 * it, too. NULL: nobody. */
	bool (*admit)(const struct relay_range *range,
	    struct relay_event *event, struct err *err);
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
	const char *banner;
	const char *bio;
	struct person *person; /* of the range, once resolved */
};

/* Which conversation an event belongs to; it is locked before any run. */
enum event_place {
	PLACE_NONE,
	PLACE_PAIR,	 /* of people[0] and people[1]; made if missing */
	PLACE_GROUP,	 /* the group of federated_id */
	PLACE_ROSTER,	 /* the same, which the event may make: admit sees it */
	PLACE_FEDERATED, /* that group, or the pair of that id that the actor is
			    in */
	PLACE_FRIENDS	 /* what people[0] and people[1] are to each other */
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

	/* What all types have in common: the range resolves it. */
	const char *federated_id;
	struct mention actor; /* host NULL: nobody acts */
	bool is_homeward;     /* the actor is one of our people */
	struct mention *people;
	size_t people_count;
	enum event_place place;
	/* The message it is about, as born at a host; id NULL: none. */
	const char *about_host;
	const char *about_id;
	bool about_ours; /* or, if that is unknown, a message named by our id */
	/* also as written elsewhere, if its author's home sent it on */
	bool about_any_name;
	const void *detail; /* of its type */

	/* What messages say. */
	bool is_forgotten; /* accepted, but nobody here takes part in it */
	bool has_message;
	const char *content;
	int64_t created_at;
	int64_t edited_at;
	struct attachment *files;
	size_t file_count;
	/* Where it was written, if its author's home sends it on; or NULL. */
	const char *written_host;
	const char *written_id;

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
	bool homeward_any;	 /* homeward_scope, likewise */
};

/* Open again, but for the malformed. */
void events_reopen(struct relay_event *events, size_t count);
void event_accept(struct relay_event *event);
/* Settles with err's reason; err is spent. */
void event_refuse(const struct relay_batch *batch, struct relay_event *event,
    const struct err *err);
/* The same with a word of its own; reason NULL: the code's. */
void event_deny(const struct relay_batch *batch, struct relay_event *event,
    enum err_code code, const char *reason, const char *why);

/* Whose event is it: the actor's host must be the peer's, or ours. */
MUST_CHECK bool event_attribute(const struct relay_batch *batch,
    struct relay_event *event, const char *home_user_id,
    const char *home_instance, struct err *err);

/* The normal host of an instance that this batch names; NULL: none, or a
 * port that the peer or we don't have. */
const char *batch_host(const struct relay_batch *batch, const char *instance);

/* {homeUserId, homeInstance, profile?}; false: it names nobody. */
MUST_CHECK bool mention_read(const struct relay_batch *batch,
    const struct json *value, struct mention *who);

/* A time that a peer claims: beyond the tolerated skew it is now. */
int64_t time_capped(int64_t ms);
/* The same of a time by which a peer knows a thing again: as it says, as far
 * as its clock may differ from ours. */
int64_t time_of_peer(int64_t ms);

#endif

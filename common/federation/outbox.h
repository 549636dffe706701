/*
 * outbox -- what we owe our peers (DESIGN 4).
 *
 * Append-only: an enqueue inserts rows and touches nothing else. An entry is
 * the event's members after "timestamp" as JSON text; who sends it builds the
 * head (eventType, contextType, messageId, encryptionVersion, timestamp) and
 * splices the rest unparsed. Peers whose status is active, unreachable or
 * pending collect entries; revoked ones never.
 *
 * The same call appends the change to the log of sync (sync_log.h), also when
 * nobody is to be told yet: a node that comes later asks for it. So call it
 * for every durable change, with all targets of that moment (those of a person
 * who leaves included), and without a shortcut when there are none.
 *
 * Enqueueing: worker threads, in the transaction of the change, after the
 * conversation's row lock (ids are drawn then, so that one conversation's
 * entries are in commit order).
 */
#ifndef POSTRIDER_OUTBOX_H
#define POSTRIDER_OUTBOX_H

#include "common/federation/node.h"
#include "common/pg/sql.h"

/* Hosts to be told, each once. */
struct targets {
	struct arena *arena;
	const char *ours;   /* never told */
	const char *except; /* nor this one; may be NULL */
	const char **hosts;
	size_t count, room;
};

void targets_init(struct targets *targets, struct arena *arena,
    const struct node *node, const char *except_host);
void targets_add(struct targets *targets, const char *host);
bool targets_have(const struct targets *targets, const char *host);
/* Takes a host out of them, into one of its own; false: it was not there. */
bool targets_take(
    struct targets *targets, const char *host, struct targets *one);
/* The hosts where a person has declared accounts. */
void targets_add_declared(
    struct targets *targets, const char *replicated_instances);

/* The declared hosts of after that before does not name. */
void targets_init_fresh(struct targets *targets, struct arena *arena,
    const struct node *node, const char *before, const char *after);

struct outbox_event {
	const char *event_type;
	const char *context_type; /* dm, friend, profile */
	const char *context_id;
	/* For sync, if context_id is one that only the outbox knows. */
	const char *sync_context_id;
	const char *entity_id; /* the messageId on the wire */
	const char *payload;   /* members without braces; see payload_open */
	bool to_all; /* if the operator's dm_relay_scope says all_peers */
	/* create, update, delete of a message: sync tells its current state,
	 * the log keeps no payload */
	bool is_message;
	/* Nobody but these targets may ever be told: most often the actor is at
	 * home elsewhere, and others get it from his home. */
	bool homeward;
	/* Means something only now (presence): not for sync. */
	bool unlogged;
	/* The event's timestamp, where its receiver compares it; 0: now. */
	int64_t at;
};

/*
 * An entry for each target that is a peer, and a row of the log. No entry when
 * relay is disabled or nobody is concerned; hosts without a peer are logged
 * (outbox.no_peer) and show in ops.peers.
 *
 * context_id: dm: the conversation's id here; friend: friend:<a>:<b>; profile:
 * the person's id here. A payload of a dm event begins with dmChannelId.
 */
MUST_CHECK bool outbox_add(struct tx *tx, const struct outbox_event *event,
    const struct targets *targets, struct err *err);

/* A writer for a payload's members, and their text once all are put. */
enum { OUTBOX_PAYLOAD_MAX = 1 << 20 };
void payload_open(struct json_out *out, struct buf *text, struct arena *arena);
const char *payload_close(struct json_out *out);

#endif

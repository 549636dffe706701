/*
 * event -- the line of changes of each conversation (DESIGN 6).
 *
 * Every change takes the next seq of its conversation's row and appends a
 * line to conversation_events, in the transaction of the change; the signal
 * follows the commit. Several changes at once cost one statement. Who changes
 * several conversations has locked them in id order before.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_EVENT_H
#define POSTRIDER_EVENT_H

#include "common/pg/sql.h"

struct change {
	int64_t conversation;
	const char *kind; /* message_created, message_updated, ... */
	int64_t entity;
	int64_t actor;
};

/* Appends the changes in their order. seq, if not NULL, is the last seq of
 * the last conversation, which is what one change wants to know. */
MUST_CHECK bool changes_append(struct tx *tx, const struct change *changes,
    size_t count, int64_t *seq, struct err *err);

/* How far changes of these conversations, in this order, move each on: for
 * statements that make the change and its line at once. */
struct seq_steps {
	int64_t *conversations; /* each once */
	int64_t *added;
	size_t count;
	int64_t *offsets; /* of each change above the seq before */
};
struct seq_steps seq_steps_of(
    struct arena *arena, const int64_t *conversations, size_t count);

/* What changed for one person: conversations that became his or are his no
 * more, friends, profiles ... Stubs have no connections and get nothing. The
 * rows of the people are locked in id order; nothing else is locked after. */
struct user_change {
	int64_t user;
	const char *kind;   /* channel_joined, channel_left, ... */
	const char *entity; /* NULL: none */
	int64_t actor;	    /* 0: nobody */
};
MUST_CHECK bool user_changes_append(struct tx *tx,
    const struct user_change *changes, size_t count, struct err *err);

/* channel_joined for each. */
MUST_CHECK bool joins_append(struct tx *tx, const int64_t *users,
    const int64_t *conversations, size_t count, struct err *err);

#endif

/*
 * outbox_names -- by which name others know a message.
 *
 * By where it was born; what came homeward and was sent on by its author's
 * home, by the home's id. Only the node where that was written knows it by its
 * own id (README, "One message, several names").
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_OUTBOX_NAMES_H
#define POSTRIDER_OUTBOX_NAMES_H

#include "common/federation/outbox.h"

struct message_name {
	const char *origin;
	const char *id;
};

struct message_names {
	struct message_name usual;
	struct message_name other; /* by which other_host knows it */
	const char *other_host;	   /* NULL: all know it by one name */
	bool to_all;		   /* dm_relay_scope is all_peers */
};

/* found: is there something to tell; not of a group that is only here. */
MUST_CHECK bool outbox_names(struct tx *tx, const struct node *node,
    int64_t message, struct message_names *names, bool *found, struct err *err);

/* Parts targets into those who know the usual name and the one who does not. */
void names_part(const struct message_names *names, const struct node *node,
    const struct targets *all, struct targets *usual, struct targets *other);

#endif

/*
 * typing_send -- telling other nodes who is writing just now.
 *
 * Not through the outbox: a question to each participant's node that nobody
 * waits for (s2s_requests, ephemeral), sent once within a few seconds or never.
 * A start is told at most once a second. A stop is told only if a start was
 * told shortly before, so a message costs its sender nothing unless others
 * still show him typing; it leaves before the message.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_TYPING_SEND_H
#define POSTRIDER_TYPING_SEND_H

#include "common/federation/outbox_people.h"

/* One of the conversation's people starts or stops. */
MUST_CHECK bool typing_send(struct tx *tx, const struct node *node,
    int64_t conversation, int64_t person, bool starts, struct err *err);

/* The parts of it, for who knows them: people of the conversation, whom to
 * tell, and its federated id. */
struct typing_news {
	const struct node *node;
	const struct rows *people;
	const struct outbox_person *person;
	const struct targets *targets;
	const char *federated_id;
	bool starts;
};
MUST_CHECK bool typing_tell(
    struct tx *tx, const struct typing_news *news, struct err *err);

#endif

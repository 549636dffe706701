/*
 * reaction -- what people put under messages.
 *
 * For each (message, person, emoji) the latest word counts, by the clock of
 * whoever said it, so that words that come twice or in another order end
 * alike; at the same millisecond the removal counts. A word of our own is
 * always later than what was said before. A removed reaction stays known
 * (reaction_tombstones) for as long as its add may come again.
 *
 * Who changes reactions has locked their conversations (reaction_message, or
 * the range of a batch).
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_REACTION_H
#define POSTRIDER_REACTION_H

#include "common/chat/message.h"

enum {
	EMOJI_MAX = 64,		/* UTF-16 units */
	REACTIONS_EACH_MAX = 32 /* of one person under one message */
};

struct reaction {
	int64_t id;
	int64_t dm_message_id;
	int64_t user_id;
	const char *emoji;
	int64_t created_at;
};
extern const struct shape reaction_shape[]; /* without its person */

/* Text of 1 to EMOJI_MAX units without white space or control characters. */
bool emoji_is_usable(const char *emoji);

/* Reactions under all these messages, by message, then id. */
MUST_CHECK bool reactions_of(struct tx *tx, const int64_t *messages,
    size_t count, struct rows *reactions, struct err *err);

/* The message, for somebody who is in its conversation, whose row is locked;
 * ERR_ABSENT for everybody else. */
MUST_CHECK bool reaction_message(struct tx *tx, int64_t message, int64_t person,
    struct message *found, struct err *err);

/* One word about a reaction. */
struct reaction_word {
	int64_t conversation;
	int64_t message;
	int64_t person;
	const char *emoji;
	int64_t at; /* 0: now; afterwards when it counts from */
	/* what came of it */
	enum reaction_outcome {
		REACTION_STAYS, /* nothing changed */
		REACTION_CHANGED,
		REACTION_NO_MESSAGE, /* it was deleted meanwhile */
		REACTION_TOO_MANY
	} outcome;
	int64_t id; /* of the reaction that came, went or stays; 0: none */
	int64_t created_at; /* of that one, if it is there */
};

/* Apply the words, append what changed (reaction_added, reaction_removed;
 * entity: the reaction) and signal. */
MUST_CHECK bool reactions_add(
    struct tx *tx, struct reaction_word *words, size_t count, struct err *err);
MUST_CHECK bool reactions_remove(
    struct tx *tx, struct reaction_word *words, size_t count, struct err *err);

#endif

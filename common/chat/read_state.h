/*
 * read_state -- how far a person has read a conversation.
 *
 * A position is a message's id here: ids are drawn while the conversation is
 * locked, so they grow in the order of arrival (seq), whatever the times say.
 * It only moves forward, whoever asks, in which order and how often; except
 * that the person himself may mark the conversation as unread, after which
 * only what was said later moves it. A deleted message leaves it in place.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_READ_STATE_H
#define POSTRIDER_READ_STATE_H

#include "common/chat/message.h"

struct read_mark {
	int64_t user;
	int64_t channel;
	int64_t message;
	int64_t said_at; /* 0: now */
	/* afterwards */
	bool moved;
};

/* The messages are of their channels. Appends channel_ack for whoever has an
 * account here. */
MUST_CHECK bool read_states_move(
    struct tx *tx, struct read_mark *marks, size_t count, struct err *err);

/* A member reads up to a message; ERR_ABSENT if it is not of the channel.
 * reached: how far he has read now. */
MUST_CHECK bool read_state_ack(
    struct tx *tx, struct read_mark *mark, int64_t *reached, struct err *err);

/* Back to a message of the channel, or to the beginning (0): mark_unread. */
MUST_CHECK bool read_state_mark_unread(struct tx *tx, int64_t channel,
    int64_t user, int64_t message, struct err *err);

/* [{channelId, lastReadMessageId}] of a person's conversations. */
MUST_CHECK bool read_states_json(
    struct tx *tx, int64_t user, const char **json, struct err *err);

#endif

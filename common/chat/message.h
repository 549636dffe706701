/*
 * message -- writing, editing, deleting and reading messages.
 *
 * The rules of the domain are here; a request and a relayed event pass
 * through the same checks. Each change appends its conversation event and
 * signals. What must travel to other nodes is federation's part
 * (common/federation/outbox_message.h), called by the handler in the same
 * transaction.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_MESSAGE_H
#define POSTRIDER_MESSAGE_H

#include "common/chat/channel.h"

enum {
	MESSAGE_CONTENT_MAX = 4000, /* UTF-16 units, after trimming */
	MESSAGE_FILES_MAX = 10,
	MESSAGE_PAGE_MAX = 100
};

struct message {
	int64_t id;
	int64_t dm_channel_id;
	int64_t user_id;
	int64_t reply_to_id;
	const char *content;
	const char *type;
	int64_t edited_at;
	int64_t created_at;
	const char *source_message_id;
	const char *source_instance;
	int64_t seq; /* of the change that gave this record; 0: only read */
};
extern const struct shape message_row_shape[]; /* fills from a row */

struct draft {
	int64_t channel;
	int64_t author;
	const char *content;  /* untrimmed; may be NULL */
	const int64_t *files; /* uploads of the author, unused so far */
	size_t file_count;
	int64_t reply_to;
};

/* Trims, checks, inserts, attaches, re-opens for members who had closed. */
MUST_CHECK bool message_create(struct tx *tx, const struct draft *draft,
    struct message *message, struct err *err);
/* ERR_ABSENT unknown, ERR_FORBIDDEN not the author. */
MUST_CHECK bool message_edit(struct tx *tx, int64_t id, int64_t author,
    const char *content, struct message *message, struct err *err);
/* message is what it was before. */
MUST_CHECK bool message_delete(struct tx *tx, int64_t id, int64_t author,
    struct message *message, struct err *err);

/* DmMessage objects as JSON text: one; a page, oldest first, the newest limit
 * or those before a message (paging by (created_at, id) of that message). */
MUST_CHECK bool message_json(
    struct tx *tx, int64_t id, const char **json, struct err *err);
MUST_CHECK bool message_page_json(struct tx *tx, int64_t channel,
    int64_t before, int64_t limit, const char **json, struct err *err);

#endif

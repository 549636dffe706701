/*
 * sync_page -- rows of the mutation log that one host may read, with all that
 * is needed to tell them.
 *
 * However many rows, a page costs the same few statements. Records live in
 * the transaction's arena.
 */
#ifndef POSTRIDER_SYNC_PAGE_H
#define POSTRIDER_SYNC_PAGE_H

#include "common/chat/message.h"
#include "common/federation/outbox_people.h"

struct sync_row {
	int64_t ready_ms;
	const char *context_type;
	const char *context_id;
	const char *event_type;
	const char *entity_id;
	const char *payload; /* NULL: a message */
	int64_t at;
	/* the message as it is now; id 0: gone */
	int64_t message_id;
	int64_t dm_channel_id;
	int64_t user_id;
	int64_t reply_to_id;
	const char *content;
	int64_t edited_at;
	int64_t created_at;
	int64_t encryption_version;
	const char *source_instance;
	const char *source_message_id;
	/* Ours for the message of a reaction that was born elsewhere. */
	const char *local_id;
};

struct sync_place {
	int64_t conversation;
	const char *federated_id; /* of a group */
	int64_t user_id;	  /* a member; a line each */
};

struct sync_page {
	struct rows rows;   /* struct sync_row, in order */
	struct rows places; /* struct sync_place, by conversation */
	struct rows people; /* members and authors */
	struct rows files;  /* by message */
};

struct sync_reach {
	const struct node *node;
	const char *host;
	const char *context_type;
	const struct rows *contexts; /* NULL: all; else only these */
	int64_t since;
	int64_t limit;
};

/* Makes readable what was committed; *more: and some is still waiting. */
MUST_CHECK bool sync_publish(struct tx *tx, bool *more, struct err *err);

/* Of the conversations with this federated id those that the host takes part
 * in, as rows of struct sync_context. */
struct sync_context {
	const char *id;
};
MUST_CHECK bool sync_contexts(struct tx *tx, const char *host,
    const char *federated_id, struct rows *contexts, struct err *err);

/* The rows after since: limit of them and whatever shares the last one's
 * millisecond. */
MUST_CHECK bool sync_page_read(struct tx *tx, const struct sync_reach *reach,
    struct sync_page *page, struct err *err);

#endif

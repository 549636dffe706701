/*
 * entry -- a row of federation_outbox, as the one who sends it sees it.
 */
#ifndef POSTRIDER_ENTRY_H
#define POSTRIDER_ENTRY_H

#include "common/base/base.h"

struct entry {
	int64_t id;
	const char *context_type;
	const char *context_id;
	const char *event_type;
	const char *entity_id;
	const char *payload; /* the event's members after timestamp, or "" */
	int64_t encryption_version;
	int64_t created_at;
	int64_t expires_at;
	int64_t retry_at; /* set aside when not 0 */
	int64_t refusals;
	const char *reason; /* the peer's last word */
	/* Of the reading, told once and before its entries. */
	const char *snapshot;
	bool late; /* one has appeared behind the cursor */
	int64_t empty_through;
};

#endif

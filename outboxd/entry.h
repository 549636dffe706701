/*
 * entry -- a row of federation_outbox, as the one who sends it sees it.
 */
#ifndef POSTRIDER_ENTRY_H
#define POSTRIDER_ENTRY_H

#include "common/base/json.h"

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
};

/* Its columns, where it lies at member in of a record. */
/* clang-format off */
#define ENTRY_SHAPE(type, in) \
	SHAPE_IN(ID,   type, in, id), \
	SHAPE_IN(TEXT, type, in, context_type), \
	SHAPE_IN(TEXT, type, in, context_id), \
	SHAPE_IN(TEXT, type, in, event_type), \
	SHAPE_IN(TEXT, type, in, entity_id), \
	SHAPE_IN(TEXT, type, in, payload), \
	SHAPE_IN(INT,  type, in, encryption_version), \
	SHAPE_IN(TIME, type, in, created_at), \
	SHAPE_IN(TIME, type, in, expires_at), \
	SHAPE_IN(TIME, type, in, retry_at), \
	SHAPE_IN(INT,  type, in, refusals), \
	SHAPE_IN(TEXT, type, in, reason)
/* clang-format on */

#endif

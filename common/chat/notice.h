/*
 * notice -- what a conversation says of itself.
 *
 * Messages of type system, whose content is JSON text. Every node makes its
 * own; they never travel. A notice is a row of dm_messages; the line of
 * changes is the caller's.
 *
 * Worker threads; the conversations are locked.
 */
#ifndef POSTRIDER_NOTICE_H
#define POSTRIDER_NOTICE_H

#include "common/pg/sql.h"

struct notice {
	int64_t channel;
	enum notice_kind { NOTICE_ADDED, NOTICE_REMOVED, NOTICE_OWNER } kind;
	int64_t actor;
	int64_t person;
	const char *reason; /* of a removal: "leave", "kick" */
	int64_t message;    /* once posted */
};

/* In their order; fills message. */
MUST_CHECK bool notices_post(
    struct tx *tx, struct notice *notices, size_t count, struct err *err);

#endif

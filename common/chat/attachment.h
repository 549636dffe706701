/*
 * attachment -- files of messages, as records.
 *
 * An upload belongs to nobody's message until one uses it; only its uploader
 * may. A relayed file has no uploader, and its name is the URL at its source
 * until filed has fetched it. The bytes are the store's (common/store).
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_ATTACHMENT_H
#define POSTRIDER_ATTACHMENT_H

#include "common/pg/sql.h"

struct attachment {
	int64_t id;
	int64_t dm_message_id;
	const char *filename;
	const char *original_name;
	const char *mimetype;
	int64_t size;
	const char *thumbnail_filename;
	double width; /* pixels; NaN: unknown, as below */
	double height;
	double duration; /* seconds */
	const char *source_url;
	const char *source_id;
	const char *federation_status;
	const char *federation_meta;
	int64_t created_at;
};
/* As the client API prints it. */
extern const struct shape attachment_shape[];

/* Files of all these messages, by message, then id. */
MUST_CHECK bool attachments_of(struct tx *tx, const int64_t *messages,
    size_t count, struct rows *files, struct err *err);

/* ERR_INVALID unless all are unused uploads of this person. */
MUST_CHECK bool attachments_use(struct tx *tx, const int64_t *ids, size_t count,
    int64_t uploader, int64_t message, struct err *err);

/* Rows of files that a peer will hand out, and the queue entries that fetch
 * them. Of each, message, source_url, source_id, names, type, size and
 * measures count. Signals filed. */
MUST_CHECK bool attachments_expect(struct tx *tx, int64_t peer,
    const char *peer_origin, const struct attachment *files, size_t count,
    struct err *err);

#endif

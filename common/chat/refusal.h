/*
 * refusal -- for whom another node would not take a file, and why it shows.
 *
 * The file's federation_meta is JSON, [{userId, username, limit}], a line a
 * person, from however many nodes; a file that we have not got ourselves
 * (federation_status remote) stays as it is.
 *
 * Who adds refusals has locked the messages' conversations. Worker threads.
 */
#ifndef POSTRIDER_REFUSAL_H
#define POSTRIDER_REFUSAL_H

#include "common/pg/sql.h"

enum { REFUSED_PEOPLE_MAX = 64 };

struct refusal {
	int64_t conversation;
	int64_t message;
	int64_t author;
	const char *filename;  /* NULL: the only one */
	int64_t limit;	       /* bytes */
	const int64_t *people; /* of the conversation */
	size_t people_count;
	bool no_file; /* afterwards: the message has no such file */
};

/* Each about another message. Appends message_updated, and
 * federation_file_rejected (entity: the file) for the author, if it is news. */
MUST_CHECK bool refusals_add(
    struct tx *tx, struct refusal *refusals, size_t count, struct err *err);

#endif

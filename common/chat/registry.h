/*
 * registry -- a person's list of the instances he is connected to.
 *
 * The client owns the content; the last writer wins, by a version that only
 * grows. Worker threads; texts live in the transaction's arena.
 */
#ifndef POSTRIDER_REGISTRY_H
#define POSTRIDER_REGISTRY_H

#include "common/pg/sql.h"

enum { REGISTRY_MAX = 100 };

struct registry_entry {
	const char *origin;
	const char *label;
	const char *username;
	const char *remote_user_id;
	const char *status;
	int64_t added_at;
	int64_t last_connected_at;
	int64_t disconnected_at;
	const char *error_message;
};

struct registry {
	struct rows entries;
	int64_t updated_at; /* 0: never written */
};

bool registry_status_is_known(const char *status);

MUST_CHECK bool registry_read(
    struct tx *tx, int64_t person, struct registry *registry, struct err *err);
/* ERR_CONFLICT unless it is newer than what is stored. */
MUST_CHECK bool registry_replace(struct tx *tx, int64_t person,
    const struct registry *registry, struct err *err);
/* These entries go, and the replicated_instances of the same hosts. */
MUST_CHECK bool registry_leave(struct tx *tx, int64_t person,
    const char *const *origins, size_t count, struct err *err);

/* {"registry":[...],"updatedAt":n} */
void registry_write(struct buf *out, const struct registry *registry);

#endif

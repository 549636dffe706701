/*
 * waiting -- signals between their commit and the notifier's thread.
 *
 * One entry a channel and key: the highest seq wins, and the latest payload.
 * Under the notifier's mutex, or its thread's own.
 */
#ifndef POSTRIDER_WAITING_H
#define POSTRIDER_WAITING_H

#include <uthash.h>

#include "common/pg/sql_conn.h"

enum { WAITING_MAX = 1 << 16 }; /* while the database is away */

/* What a signal is about; compared as bytes, so made from zeroes. */
struct waiting_key {
	int64_t key;
	int64_t channel;
	char word[SIGNAL_WORD_MAX];
};

struct waiting {
	struct waiting_key key;
	int64_t seq;
	char *payload; /* of its own; NULL: none, or no memory for a hint */
	UT_hash_handle hh;
};

/* Once WAITING_MAX wait, new ones are dropped: everybody looks anyway. */
void waiting_put(struct waiting **waiting, const struct signal *signal);
/* As it was put; the payload stays the entry's. */
struct signal waiting_signal(const struct waiting *entry);
size_t waiting_count(const struct waiting *waiting);
void waiting_free(struct waiting **waiting);

#endif

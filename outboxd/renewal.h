/*
 * renewal -- asks about all leases of one kind at once, by a worker.
 *
 *     renewal_new -> renewal_add for each lease -> renewal_begin -> told
 *
 * Leases are told apart by their tokens: what was given back or taken while
 * the worker asked is neither kept nor lost. A renewal that failed says
 * nothing of any lease; leases end by themselves. Loop thread.
 */
#ifndef POSTRIDER_OUTBOXD_RENEWAL_H
#define POSTRIDER_OUTBOXD_RENEWAL_H

#include "common/base/work.h"
#include "common/queue/lease.h"

struct renewal;

enum renewal_word {
	RENEWAL_SILENT, /* about this lease */
	RENEWAL_LOST,
	RENEWAL_KEPT,
	RENEWAL_LEAVE /* kept, but it may not go on */
};

/* Of at most so many leases. */
struct renewal *renewal_new(enum lease_of of, int64_t most);
void renewal_add(struct renewal *renewal, const char *key, const char *token);
void renewal_add_id(struct renewal *renewal, int64_t key, const char *token);

/* The renewal ends with told, or now if the workers are too busy: false. */
MUST_CHECK bool renewal_begin(struct renewal *renewal, struct work_pool *pool,
    void (*told)(void *owner, const struct renewal *renewal), void *owner);

/* While it is told: of one of the owner's leases, and until when (steady ms)
 * those last that were kept. */
enum renewal_word renewal_of(const struct renewal *renewal, const char *token);
int64_t renewal_until(const struct renewal *renewal);

#endif

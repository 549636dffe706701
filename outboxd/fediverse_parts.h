/*
 * fediverse_parts -- a leased domain and an attempt of one of its rows; the
 * inside of fediverse.h, for its files only. Loop thread only.
 *
 *     read -> ready -> on the way (worker, wire, worker ...) -> ended ->
 * written
 *
 * An attempt belongs to exactly one of these lists of its domain. What is
 * dropped before its end stays pending in the queue.
 */
#ifndef POSTRIDER_FEDIVERSE_PARTS_H
#define POSTRIDER_FEDIVERSE_PARTS_H

#include "common/fediverse/delivery.h"
#include "outboxd/fediverse.h"
#include "outboxd/fediverse_keys.h"
#include "outboxd/outboxd.h"
#include "outboxd/silence.h"

struct fediverse_domain;
struct fediverse_probes;

struct attempt {
	struct fediverse_domain *domain;
	struct attempt *prev, *next;
	struct arena *arena; /* its own */
	struct outbound_item item;
	const struct outbound_delivery *way; /* NULL: there is no such way */
	struct delivery_try hop;
	struct pkey *key;
	struct client_call *call; /* while it is on the wire */
	int64_t began_ms;
	/* the worker's */
	bool sends;
	bool failed;
	struct err err;
};

struct fediverse_domain {
	struct fediverse *all;
	struct fediverse_domain *prev, *next;
	struct arena *arena; /* of the lease's texts */
	struct outbound_lease lease;
	int64_t since;	    /* steady ms */
	int64_t lease_ends; /* steady ms */
	int64_t not_before; /* no step earlier: the last one failed */
	uint64_t hints;	    /* how many there were when it last read */
	int room;	    /* how many may be on the way */
	bool well;	    /* its silence would be remarkable */
	struct attempt *ready;
	size_t ready_count;
	struct attempt *away;
	size_t away_count;
	struct attempt *ended;
	size_t ended_count;
	int64_t ended_since; /* steady ms, of the first of them */
	bool news;	     /* one of them tells something of the domain */
	bool alone;	     /* its last step failed: not with others */
	bool stepped;	     /* at least once */
	bool stepping;	     /* a worker has it */
	bool dry;	     /* nothing more was due */
	bool burying;	     /* it is dead, and has more rows */
	bool closing;	     /* its turn is over */
	bool releasing;	     /* a worker gives it back */
	bool unreleased;     /* it could not */
	bool lost;
};

struct fediverse {
	struct fediverse_def def;
	struct client *client; /* NULL once aborted */
	struct loop_timer *tick;
	struct loop_timer *renew;
	struct loop_timer *patience;
	struct loop_timer *kick; /* a place became free */
	struct loop_timer *step; /* somebody wants one */
	struct fediverse_domain *domains;
	struct fediverse_keys *keys;
	struct fediverse_probes *probes;
	struct silence silence;
	int64_t held;
	int64_t away; /* attempts on the way, of all domains */
	uint64_t hints;
	uint64_t epoch; /* of the lock: what an earlier one leased is void */
	size_t pending; /* work of ours beside the domains' */
	int steps;	/* workers do now */
	bool locked;
	bool up;
	bool claiming;
	bool claim_again;
	bool unsure;	  /* is something leased that we do not know? */
	bool drop_failed; /* a worker's */
	bool crowded;	  /* the last look found no room for all */
	bool draining;
	bool renewing;
};

/* ---- fediverse.c ---- */

/* There is room, or something may be due. */
void fediverse_look(struct fediverse *all);

/* ---- fediverse_keeping.c ---- */

void fediverse_renew(struct fediverse *all);

/* ---- fediverse_probe.c ---- */

/* Asks the dead for a sign of life, now and then, once it is up. */
struct fediverse_probes *fediverse_probes_new(struct fediverse *all);
void fediverse_probes_free(struct fediverse_probes **probes);

/* ---- fediverse_domain.c ---- */

/* Claimed at began (steady ms); starts with fediverse_domain_go. */
struct fediverse_domain *fediverse_domain_new(
    struct fediverse *all, const struct outbound_lease *lease, int64_t began);
/* Does whatever is to be done next; the domain may be gone afterwards. */
void fediverse_domain_go(struct fediverse_domain *domain);
/* Its lease is no longer ours. */
void fediverse_domain_lose(struct fediverse_domain *domain);
/* Stops waiting for answers. */
void fediverse_domain_abort(struct fediverse_domain *domain);
/* An attempt that was on the way is over; dropped: it is as if never begun. */
void fediverse_domain_back(struct attempt *attempt, bool dropped);

/* Its rows are to be written or buried, or it could have more. */
bool fediverse_domain_wants_step(const struct fediverse_domain *domain);
bool fediverse_domain_wants_rows(const struct fediverse_domain *domain);

/* ---- fediverse_step.c ---- */

/* What came with a claim, when there were so many hints, may be all that the
 * first step would read. */
void fediverse_step_spare(struct fediverse_domain *domain,
    const struct outbound_claimed *claimed, uint64_t hints);

/* A domain wants a step: after this turn, together with others. */
void fediverse_step_soon(struct fediverse *all);
/* That timer's. */
void fediverse_steps_begin(void *all);

/* ---- fediverse_attempt.c ---- */

/* A copy of item, to be sent as domain wants it. */
struct attempt *attempt_new(struct fediverse_domain *domain,
    const struct outbound_domain *row, const struct outbound_item *item);
void attempt_free(struct attempt **attempt);
/* All of a list. */
void attempts_drop(struct attempt **list, size_t *count);
/* False: the workers are too busy. */
MUST_CHECK bool attempt_begin(struct attempt *attempt);
void attempt_log(const struct attempt *attempt);

#endif

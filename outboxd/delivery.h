/*
 * delivery -- one leased peer on the loop: what is read, sent and acknowledged.
 *
 *     step (a worker, drain.h) -> batches, one after the other (curl) -> step
 *
 * The next batch leaves when the one before it was accepted whole, and while
 * the last load is on its way the next one is read, and signed while the one
 * after it is read. An answer that is anything else stops what was read: it is
 * booked by a step of its own, as the rescan of every second is. There is one
 * POST of a peer at a time, and none after the lease's end.
 *
 * The inside of deliver.h, for its files only. Loop thread only.
 */
#ifndef POSTRIDER_DELIVERY_H
#define POSTRIDER_DELIVERY_H

#include "outboxd/deliver.h"
#include "outboxd/drain.h"
#include "outboxd/elsewhere.h"
#include "outboxd/pace.h"
#include "outboxd/silence.h"

/* A leased peer. */
struct delivery {
	struct deliverer *all;
	struct drain *drain; /* a worker's while stepping or releasing */
	bool stepping;
	size_t sealing; /* loads that workers sign */
	bool releasing;
	struct client_call *call; /* what is on the wire, and it is of */
	struct parcel *out;	  /* the load that is first */
	struct loop_timer *again;
	bool waiting; /* for nothing but that timer */
	int64_t peer;
	const char *token;
	int64_t since;	    /* steady ms: leased */
	int64_t busy_since; /* or warm no longer */
	int64_t lease_ends;
	int64_t scan_ends; /* what was read is to be read again then */
	bool hinted;	   /* there may be more than it last read */
	int64_t
	    warm_ends; /* the lease is kept so long though nothing is there */
	bool warm;     /* which is why it waits */
	struct load *loads;
	struct load *old; /* stopped; a step may still read an answer in it */
	struct load *spare;
	bool more; /* the next load may be read ahead */
	struct owed owed;
	int status;
	int64_t max_upload_size;
	int64_t took_ms;
	struct arena *answers;
	struct answer answer;
	struct parcel *refused; /* that answer is no plain acceptance */
	bool lost;
	bool broken; /* a step failed */
	bool leave;
	bool fresh_secret;
	/* the worker's */
	bool failed;
	struct err err;
	struct delivery *prev;
	struct delivery *next;
};

/* Whom to look at. */
struct wanted {
	bool any;  /* everybody */
	bool hint; /* those that are held, too */
	size_t count;
	int64_t peers[32];
};

struct deliverer {
	struct deliver_def def;
	struct loop_timer *tick;
	struct loop_timer *renew;
	struct loop_timer *patience;
	struct delivery *deliveries;
	struct pace *pace;
	int64_t held;
	int64_t warm; /* of these: nothing is there, and they take no room */
	struct silence silence;
	int64_t wholly_at; /* steady ms: last claim that relied on no floor */
	uint64_t epoch;	   /* of the lock: what an earlier one leased is void */
	size_t pending;	   /* work of ours beside the deliveries */
	bool locked;	   /* our lock is held */
	bool up;	   /* and nothing of an earlier one is left */
	bool claiming;
	struct wanted wanted; /* when there is no claim under way */
	struct elsewhere elsewhere;
	bool unsure;	  /* is something leased that we do not know? */
	bool drop_failed; /* a worker's */
	bool crowded;	  /* the last look found no room for all */
	bool draining;
	bool renewing;
	bool renew_again;
};

/* Claimed at began; starts with delivery_go or delivery_release. */
struct delivery *delivery_new(
    struct deliverer *all, struct drain *drain, int64_t began);
void delivery_go(struct delivery *delivery);
/* Goes on after a first step, with its error if it failed. */
void delivery_go_on(struct delivery *delivery, const struct err *failed);
void delivery_release(struct delivery *delivery);

/* Its lease is no longer ours. */
void delivery_lose(struct delivery *delivery);
/* There may be something new: it reads once more before it ends. */
void delivery_hint(struct delivery *delivery);
/* It is to be left, or read anew: what only waits for a timer goes on now. */
void delivery_nudge(struct delivery *delivery);
/* Stops waiting for an answer. */
void delivery_abort(struct delivery *delivery);

/* deliver.c: there is room, or it is time. */
void deliverer_look(struct deliverer *all);
/* keeping.c: asks about all leases. */
void deliverer_renew(struct deliverer *all);

#endif

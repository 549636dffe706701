/*
 * outbound -- the queue of activities owed to inboxes
 * (fediverse_outbound_queue).
 *
 * A row is enqueued within somebody's transaction, and ends as delivered, as
 * failed (the receiver said no, for good) or as dead (given up, or its domain
 * is dead); failed and dead rows are the queue's dead letters, with the reason
 * in last_error. What may be sent when is a matter of its domain (breaker.h),
 * whose row carries the lease: whoever holds it sends the domain's rows, and
 * nobody else does. Delivery is at least once: a row is delivered after the
 * answer, and receivers know repeats by the activity's id.
 *
 * Worker threads. Records live in the transaction's arena.
 */
#ifndef POSTRIDER_OUTBOUND_H
#define POSTRIDER_OUTBOUND_H

#include "common/fediverse/home.h"
#include "common/fediverse/breaker.h"
#include "common/fediverse/outcome.h"
#include "common/pg/sql.h"

enum outbound_status {
	OUTBOUND_PENDING,
	OUTBOUND_DELIVERED,
	OUTBOUND_FAILED,
	OUTBOUND_DEAD
};

const char *outbound_status_text(enum outbound_status status);
MUST_CHECK bool outbound_status_parse(
    const char *text, enum outbound_status *status);

/* ---- enqueue ---- */

struct enqueue_request {
	const char *activity_id;
	const char *payload_json; /* goes out octet for octet */
	const char *target_inbox;
	const char *target_domain; /* NULL: the inbox's */
	const char *actor_user_id; /* who signs, a UUID; NULL: nobody */
	const char *transport;	   /* NULL: as the settings say */
	bool shared_inbox;
};

/* An independent copy. */
struct enqueue_request enqueue_request_copy(
    struct arena *arena, const struct enqueue_request *request);

/* A row. */
struct outbound_item {
	const char *id;
	const char *activity_id;
	const char *payload_json;
	const char *target_inbox;
	const char *target_domain;
	const char *status;
	int64_t attempts;
	int64_t max_attempts;
	const char *last_error;
	int64_t next_retry_at;
	int64_t created_at;
	int64_t delivered_at;
	const char *actor_user_id;
	const char *transport;
	bool shared;
	int64_t unauthorized;
	int64_t unresolved;
	/* Of its actor; NULL, when there is none. key_made_at tells its keys
	 * apart. */
	const char *actor_name;
	bool actor_is_instance;
	int64_t key_made_at;
	/* A deleted actor sends nothing but its own Delete; whoever does not
	 * take that has forgotten its key, and will not get it again. */
	bool silenced;
	bool departed;
};

/*
 * Takes inboxes in any spelling of their host, and refuses what is ours: own
 * deliveries never enter the queue. An activity that is already owed to the
 * inbox gives that row.
 */
MUST_CHECK bool outbound_enqueue(struct tx *tx, const struct home *home,
    const struct enqueue_request *request, struct outbound_item *item,
    struct err *err);

/* What is told of a row. */
struct outbound_line {
	const char *id;
	const char *activity_id;
	const char *target_inbox;
	const char *status;
	int64_t attempts;
	const char *last_error;
	int64_t next_retry_at;
	int64_t created_at;
	int64_t delivered_at;
};

extern const struct shape outbound_line_shape[];

/* The same for many inboxes, whatever the request names: all or none. */
MUST_CHECK bool outbound_enqueue_all(struct tx *tx, const struct home *home,
    const struct enqueue_request *request, const char *const *inboxes,
    size_t count, struct rows *lines, struct err *err);
/* To whom an activity is or was owed, at most a thousand. */
MUST_CHECK bool outbound_of_activity(struct tx *tx, const char *activity_id,
    struct rows *lines, struct err *err);

MUST_CHECK bool outbound_find(
    struct tx *tx, const char *id, struct outbound_item *item, struct err *err);

/* ---- domains ---- */

struct outbound_lease {
	const char *domain;
	const char *token;
};

/* Only the domain of the oldest row that is due; count 0 or 1. */
MUST_CHECK bool outbound_claim_oldest(
    struct tx *tx, int64_t worker, struct rows *leases, struct err *err);

/* A leased domain. */
struct outbound_domain {
	const char *domain;
	const char *token;
	struct breaker breaker;
	const char *style; /* known to work, and fresh; or wanted; or NULL */
	const char *first_style; /* of the settings */
	const char *transport;	 /* of the settings */
	bool on; /* setting fediverse, and no operator's pause or block */
	bool blocked;
	bool well;    /* it has taken something, and nothing failed since */
	bool praised; /* its row says so, since a few seconds at most */
};

/* A domain that was just leased, as it was then. */
struct outbound_claimed {
	struct outbound_lease lease;
	struct outbound_domain domain;
	const struct outbound_item *only; /* the one row that is due; NULL: it
					   * is to be read what is */
};

/* Domains that have something due, at most room, the longest unserved first;
 * rows of struct outbound_claimed. */
MUST_CHECK bool outbound_claim(struct tx *tx, int64_t room, int64_t worker,
    struct rows *claimed, struct err *err);

/* What became of a row. */
struct outbound_result {
	const struct outbound_item *item;
	struct outcome outcome;
	const char *style;    /* that worked, or NULL */
	bool style_failed;    /* what was remembered did not work */
	const char *moved_to; /* on another server, or NULL */
};

/* What a holder has to say of a leased domain, and what he finds. */
struct outbound_visit {
	struct outbound_lease lease;
	const struct outbound_result *results;
	size_t count;
	bool held; /* false: the lease is no longer ours */
	struct outbound_domain domain;
};

/* Locks the domains of count visits for the rest of the transaction. */
MUST_CHECK bool outbound_lock(struct tx *tx, struct outbound_visit *visits,
    size_t count, struct err *err);

/* Writes the results of those that are held, and what they mean for their
 * domains. */
MUST_CHECK bool outbound_settle(struct tx *tx, struct outbound_visit *visits,
    size_t count, struct err *err);

/* Does an operator want nothing to do with an inbox's server? */
MUST_CHECK bool outbound_is_blocked(
    struct tx *tx, const char *inbox, bool *blocked, struct err *err);

/* Rows of a dead or blocked domain become dead, many at once; *more: there are
 * others. */
MUST_CHECK bool outbound_bury(struct tx *tx,
    const struct outbound_domain *domain, bool *more, struct err *err);

/* What is to be read of count domains. */
struct outbound_reading {
	size_t count;
	const char **domains;
	int64_t *limits;	/* how many rows of each */
	const char **under_way; /* ids of rows that are left out */
	size_t under_way_count;
	bool *more; /* found: each may have others */
};

/* Due rows of all of them, oldest first; no more of a domain once its payloads
 * have a megabyte. */
MUST_CHECK bool outbound_read(struct tx *tx,
    const struct outbound_reading *reading, struct rows *items,
    struct err *err);

MUST_CHECK bool outbound_release(
    struct tx *tx, const struct outbound_lease *lease, struct err *err);

/* Dead domains that nobody has asked for a sign of life for a while, at most
 * room; they count as asked. Leases without a token. */
MUST_CHECK bool outbound_probe(struct tx *tx, int64_t room, int64_t every_ms,
    struct rows *domains, struct err *err);
/* An origin knows the newer style: it signed a verified request so, or says
 * that it takes it. */
MUST_CHECK bool outbound_signs_rfc9421(
    struct tx *tx, const char *origin, struct err *err);
/* It lives. */
MUST_CHECK bool outbound_revive(
    struct tx *tx, const char *domain, struct err *err);

#endif

/*
 * friend -- friend requests and friendships.
 *
 * A pair of people has at most one pending request and at most one
 * friendship. Whoever changes a pair locks it, reads how it stands, decides
 * (friend_*, in memory) and writes; a request of a client and an event of
 * another node decide alike.
 *
 * Nodes tell each other of a pair late, twice and out of order. A request is
 * known by who asks and when. What is over stays over: the marks remember up
 * to when requests of either side are answered or withdrawn and friendships
 * ended, and what is not newer changes nothing. Who decides here takes a time
 * beyond the marks (friend_time), so that clocks that differ do no harm.
 *
 * Requests that cross: the one that finds the other pending is its acceptance,
 * on whichever node they meet.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_FRIEND_H
#define POSTRIDER_FRIEND_H

#include "common/chat/user.h"

/* Times in wall ms; 0: never. */
struct friend_state {
	int64_t request; /* pending; 0: none, or not stored yet */
	int64_t asker;	 /* 0: nothing is pending */
	int64_t asked_at;
	int64_t since; /* friends; 0: they are none */
	int64_t low_over_at, high_over_at;
	int64_t ended_at;
};

struct friend_pair {
	int64_t low, high;
	bool is_dead; /* one of them is deleted: nothing changes */
	struct friend_state was, is;
	int64_t accepter;   /* of a friendship that begins */
	const char *answer; /* accepted, declined; NULL: withdrawn */
	int64_t ender;	    /* need not be told; 0: tell both */
};

struct friend_pair friend_pair_of(int64_t a, int64_t b);

/* Locks all pairs in a fixed order. */
MUST_CHECK bool friends_lock(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err);
/* How locked pairs stand. */
MUST_CHECK bool friends_read(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err);
/* Stores what was decided and tells the people; is.request is filled. */
MUST_CHECK bool friends_write(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err);

/* Now, or later if the pair has seen later. */
int64_t friend_time(const struct friend_pair *pair);
int64_t friend_other(const struct friend_pair *pair, int64_t person);

/* ---- deciding ---- */

enum friend_outcome {
	FRIEND_SAME, /* it was so, or is over: nothing changes */
	FRIEND_CHANGED,
	FRIEND_CROSSED, /* asked, and thereby accepted */
	FRIEND_UNASKED	/* nobody had asked for that friendship */
};

enum friend_outcome friend_ask(
    struct friend_pair *pair, int64_t asker, int64_t at);
/* asked_at is the request's; at is when it was answered. */
enum friend_outcome friend_accept(
    struct friend_pair *pair, int64_t asker, int64_t asked_at, int64_t at);
enum friend_outcome friend_decline(
    struct friend_pair *pair, int64_t asker, int64_t asked_at);
enum friend_outcome friend_withdraw(
    struct friend_pair *pair, int64_t asker, int64_t asked_at);
/* The friendship itself. Unless it is trusted, the asker must have asked. */
enum friend_outcome friend_begin(
    struct friend_pair *pair, int64_t asker, int64_t at, bool trusted);
enum friend_outcome friend_end(struct friend_pair *pair, int64_t at);

/* ---- looking ---- */

struct friend_request {
	int64_t id;
	int64_t from_id;
	int64_t to_id;
	const char *status;
	int64_t created_at;
};
extern const struct shape friend_request_shape[];
/* ERR_ABSENT without one. */
MUST_CHECK bool friend_request_by_id(
    struct tx *tx, int64_t id, struct friend_request *request, struct err *err);

#endif

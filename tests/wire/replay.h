/*
 * replay -- recorded requests sent to our node, signed anew.
 *
 * Our node plays one of the recorded servers under that server's own origin.
 * A request that was rightly signed is signed for now, with the time stamp as
 * far from now as it was then; a wrong signature stays wrong. Answers must
 * have the recorded status and the same JSON, but for ids and times (an id
 * that the record names must be the same one of ours wherever it shows) and
 * for the wording of errors of the HTTP layer. Where we differ on purpose a
 * deviation names the row of the design's table and what we answer instead.
 */
#ifndef POSTRIDER_REPLAY_H
#define POSTRIDER_REPLAY_H

#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"
#include "tests/wire/recording.h"

struct deviation {
	size_t place;	 /* of the exchange */
	const char *why; /* the row it stands in */
	int status;	 /* ours; 0: don't send this one */
	/* Our answer if it begins with {, else a part of it. */
	const char *answer;
};

struct replay {
	struct arena *arena;
	struct test_node *node;
	int port;
	struct test_person admin;
	struct test_person member;
	const struct deviation *deviations; /* ended by why NULL; or NULL */
	const char *ids[64][2];		    /* recorded, ours */
	size_t id_count;
};

/* A node under https://<host>, with the people of the recordings: alice at
 * nova.test, bob at orbit.test, an admin and a member of our own. */
void replay_begin(struct replay *replay, const char *host, const char *policy);
/* With the limit of requests a minute and address. */
void replay_begin_with(struct replay *replay, const char *host,
    const char *policy, int rate_general);
void replay_end(struct replay *replay);

/* Makes the node take peer (https://<host>) with this secret. */
void replay_peer(struct replay *replay, const char *host, const char *secret);

/* Sends one exchange and compares; not those that the recorder answered. */
void replay_exchange(
    struct replay *replay, const struct recording *recording, size_t place);
/* As somebody else, signed with a secret of his; NULL: unsigned. */
struct test_reply replay_as(struct replay *replay,
    const struct exchange *exchange, const char *origin, const char *secret);
/* All of a case that go to the node's host. */
void replay_case(struct replay *replay, const char *name);

/* Are two JSON texts the same but for ids and times? */
bool replay_agree(
    struct replay *replay, const char *recorded, const char *ours);

/* SQL on the node's database. */
void replay_sql(struct replay *replay, const char *sql);

#endif

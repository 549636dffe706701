/*
 * people -- who registers, who peers, who talks to whom.
 *
 * Actors write, edit and delete what they wrote, one thread each, and keep a
 * ledger. An answer that did not come, or a 5xx, leaves them unsure; they
 * read back what became of a message of theirs. The ledger is read when no
 * actor runs.
 */
#ifndef POSTRIDER_CHAOS_PEOPLE_H
#define POSTRIDER_CHAOS_PEOPLE_H

#include "tests/chaos/site.h"

enum { ACTORS = SIDES * CONVERSATIONS, NOTE_TEXT = 48, NOTE_ID = 24 };

/* Registers, peers, opens conversations; every daemon must be up. */
MUST_CHECK bool people_begin(struct site *site, struct err *err);

/* The first person's first conversation gets a message. */
MUST_CHECK bool people_say(const struct side *side, const char *text);

enum note_state { NOTE_LIVE, NOTE_GONE, NOTE_UNSURE };

/* A message that was written. */
struct note {
	char id[NOTE_ID]; /* "": it is not known whether it exists */
	char content[NOTE_TEXT];
	char maybe[NOTE_TEXT]; /* an edit with an unknown end; "": none */
	enum note_state state;
};

struct actor {
	struct crowd *crowd;
	int side;
	int person;
	int other;
	struct dice dice;
	pthread_t thread;
	struct note *notes;
	size_t count;
	size_t room;
	int written;
	int edits;
	int acts;
	int unknown;
	int faults; /* answers that should not be */
};

struct crowd {
	const struct site *site;
	struct actor actors[ACTORS];
	_Atomic int left; /* actions to begin */
	_Atomic int running;
	int think_ms;
};

void crowd_init(struct crowd *crowd, const struct site *site, uint64_t seed);
/* So many actions, about so long; ledgers go on. */
void crowd_start(struct crowd *crowd, int rounds, int ms);
/* No further action is begun. */
void crowd_stop(struct crowd *crowd);
bool crowd_is_done(const struct crowd *crowd);
void crowd_join(struct crowd *crowd);
void crowd_done(struct crowd *crowd);

#endif

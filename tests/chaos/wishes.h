/*
 * wishes -- what a person does next.
 *
 * Each looks at what his node shows him and acts on something of it, through
 * the client API, as the dice say. One thread a person.
 */
#ifndef POSTRIDER_CHAOS_WISHES_H
#define POSTRIDER_CHAOS_WISHES_H

#include "tests/chaos/line.h"

struct wisher {
	const struct site *site;
	int side;
	int place;
	struct line line;
	struct dice dice;
	int said;
	int acts;
	int taken;   /* 2xx */
	int refused; /* 4xx */
	int unknown; /* no answer, 502, 503, 504 */
	int faults;  /* 500: never */
};

/* Opens a pair with everybody elsewhere and befriends them; nothing is wrong
 * yet. */
MUST_CHECK bool wisher_begin(struct wisher *wisher, struct arena *arena);

void wisher_act(struct wisher *wisher, struct arena *arena);

#endif

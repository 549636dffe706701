/*
 * breaker -- whether a domain may be tried (contract, section 5).
 *
 *     closed ---- five failures in ten minutes ----> open: pause
 *     open ------ the pause is over ---------------> half open: one probe
 *     half open - it failed -----------------------> open: pause twice as long
 *     any ------- it answered ---------------------> closed
 *     any ------- failures on seven days, or gone -> dead
 *
 * Failures of the same second are one, and after each the domain is left alone
 * for a second, so that many rows do not run into one dead server. Whatever a
 * domain answers short of a server error shows that it lives and ends the
 * series. The dead come back by a success elsewhere: fediverse_revive.
 *
 * Pure: state in, state out; it is a row of fediverse_domains, written by
 * whoever holds the domain's lease. Any thread.
 */
#ifndef POSTRIDER_BREAKER_H
#define POSTRIDER_BREAKER_H

#include "common/base/base.h"

enum breaker_state {
	BREAKER_CLOSED,
	BREAKER_OPEN,
	BREAKER_HALF_OPEN,
	BREAKER_DEAD
};

enum {
	BREAKER_OPENS_AT = 5,
	BREAKER_DIES_AT_DAYS = 7,
	BREAKER_WINDOW_MS = 10 * 60 * 1000,
	BREAKER_PAUSE_MS = 30 * 60 * 1000,
	BREAKER_PAUSE_MAX_MS = 6 * 60 * 60 * 1000,
	BREAKER_HOLD_MAX_MS = 48 * 60 * 60 * 1000
};

/* Times in Unix ms, 0: never; day counts from 1970-01-01. */
struct breaker {
	enum breaker_state state;
	int64_t failures;
	int64_t failures_since_ms;
	int64_t last_failure_ms;
	int64_t failure_days;
	int64_t last_day;
	int64_t pauses;
	int64_t not_before_ms;
	bool gone;
	int64_t died_ms;
};

const char *breaker_state_text(enum breaker_state state);
MUST_CHECK bool breaker_state_parse(
    const char *text, enum breaker_state *state);

/* Looked at: a pause that is over makes it half open. */
void breaker_look(struct breaker *breaker, int64_t now_ms);
/* How many requests may be under way, of at most: none, one or all. */
int breaker_room(const struct breaker *breaker, int64_t now_ms, int most);

/* chance: any random number, up to a fifth is added to a pause. */
void breaker_failed(struct breaker *breaker, int64_t now_ms, uint32_t chance);
void breaker_answered(struct breaker *breaker);
/* It asked for time. */
void breaker_hold(struct breaker *breaker, int64_t now_ms, int64_t wait_ms);
void breaker_gone(struct breaker *breaker, int64_t now_ms);

#endif

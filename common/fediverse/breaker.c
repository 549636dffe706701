#include "common/fediverse/breaker.h"

enum { DAY_MS = 86400 * 1000, MOMENT_MS = 1000 };

static const char *const states[] = {
	[BREAKER_CLOSED] = "closed",
	[BREAKER_OPEN] = "open",
	[BREAKER_HALF_OPEN] = "half_open",
	[BREAKER_DEAD] = "dead",
};

const char *breaker_state_text(enum breaker_state state)
{
	return states[state];
}

bool breaker_state_parse(const char *text, enum breaker_state *state)
{
	for (size_t i = 0; i < COUNT(states); i++) {
		if (strcmp(states[i], text) != 0)
			continue;
		*state = (enum breaker_state)i;
		return true;
	}
	return false;
}

void breaker_look(struct breaker *breaker, int64_t now_ms)
{
	if (breaker->state == BREAKER_OPEN && breaker->not_before_ms <= now_ms)
		breaker->state = BREAKER_HALF_OPEN;
}

int breaker_room(const struct breaker *breaker, int64_t now_ms, int most)
{
	if (breaker->not_before_ms > now_ms)
		return 0;
	switch (breaker->state) {
	case BREAKER_CLOSED:
		return most;
	case BREAKER_HALF_OPEN:
		return 1;
	case BREAKER_OPEN:
	case BREAKER_DEAD:
		break;
	}
	return 0;
}

static void die(struct breaker *breaker, int64_t now_ms)
{
	if (breaker->state != BREAKER_DEAD)
		breaker->died_ms = now_ms;
	breaker->state = BREAKER_DEAD;
}

static void pause(struct breaker *breaker, int64_t now_ms, uint32_t chance)
{
	int64_t wait = BREAKER_PAUSE_MS;

	for (int64_t i = 0; i < breaker->pauses && wait < BREAKER_PAUSE_MAX_MS;
	     i++)
		wait *= 2;
	if (wait > BREAKER_PAUSE_MAX_MS)
		wait = BREAKER_PAUSE_MAX_MS;
	breaker->pauses++;
	breaker->state = BREAKER_OPEN;
	breaker->not_before_ms =
	    now_ms + wait + wait / 1000 * (int64_t)(chance % 201);
	breaker->failures = 0;
	breaker->failures_since_ms = 0;
}

static void count(struct breaker *breaker, int64_t now_ms)
{
	if (breaker->failures == 0 ||
	    now_ms - breaker->failures_since_ms > BREAKER_WINDOW_MS) {
		breaker->failures = 0;
		breaker->failures_since_ms = now_ms;
	}
	breaker->failures++;
	if (breaker->failure_days == 0 ||
	    breaker->last_day != now_ms / DAY_MS) {
		breaker->failure_days++;
		breaker->last_day = now_ms / DAY_MS;
	}
}

void breaker_hold(struct breaker *breaker, int64_t now_ms, int64_t wait_ms)
{
	if (wait_ms > BREAKER_HOLD_MAX_MS)
		wait_ms = BREAKER_HOLD_MAX_MS;
	if (breaker->not_before_ms < now_ms + wait_ms)
		breaker->not_before_ms = now_ms + wait_ms;
}

void breaker_failed(struct breaker *breaker, int64_t now_ms, uint32_t chance)
{
	bool same = breaker->failure_days > 0 &&
	    now_ms - breaker->last_failure_ms < MOMENT_MS;

	breaker->last_failure_ms = now_ms;
	if (breaker->state == BREAKER_DEAD)
		return;
	if (!same)
		count(breaker, now_ms);
	if (breaker->failure_days >= BREAKER_DIES_AT_DAYS)
		die(breaker, now_ms);
	else if (breaker->state == BREAKER_HALF_OPEN ||
	    breaker->failures >= BREAKER_OPENS_AT)
		pause(breaker, now_ms, chance);
	else
		breaker_hold(breaker, now_ms, MOMENT_MS);
}

void breaker_answered(struct breaker *breaker)
{
	if (breaker->state == BREAKER_DEAD)
		return;
	*breaker = (struct breaker){
		.not_before_ms = breaker->state == BREAKER_CLOSED
		    ? breaker->not_before_ms
		    : 0,
		.last_failure_ms = breaker->last_failure_ms,
	};
}

void breaker_gone(struct breaker *breaker, int64_t now_ms)
{
	die(breaker, now_ms);
	breaker->gone = true;
}

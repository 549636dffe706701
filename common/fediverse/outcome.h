/*
 * outcome -- what an attempt was worth: the one table of what a status means
 * to a row and to its domain (contract of ActivityPub delivery, section 3).
 *
 * Any thread, no state.
 */
#ifndef POSTRIDER_OUTCOME_H
#define POSTRIDER_OUTCOME_H

#include "common/base/arena.h"

/* What becomes of the row. */
enum outcome_fate { FATE_DELIVERED, FATE_FAILED, FATE_RETRY };

/* What it says about the domain. */
enum outcome_sign {
	SIGN_NOTHING, /* our own affair */
	SIGN_ALIVE,   /* it answered */
	SIGN_FAILURE
};

struct outcome {
	enum outcome_fate fate;
	enum outcome_sign sign;
	bool made; /* a request left us: the attempt counts */
	bool inbox_gone;
	bool domain_gone;
	bool unauthorized;	/* 401: a bounded number of times */
	bool unresolved;	/* no such name: likewise */
	bool uncounted;		/* our own network: as if it was not tried */
	int code;		/* 0: no answer */
	int64_t retry_after_ms; /* -1: none */
	const char *text;	/* for last_error; NULL: delivered */
};

enum { OUTCOME_UNAUTHORIZED_MAX = 4, OUTCOME_UNRESOLVED_MAX = 4 };

/* shared: the inbox is a whole server's. text and retry_after_ms are left. */
struct outcome outcome_of_status(int code, bool shared);
/* Nobody answers anybody: it is due again in wait_ms, and nothing counts. */
void outcome_take_back(
    struct outcome *outcome, struct arena *arena, int64_t wait_ms);
/* The counter of attempts by outcome class: a word for the metrics. */
const char *outcome_class(const struct outcome *outcome);

/* "code: start of the answer", without control characters, at most 1 KiB. Code
 * 0, nobody answered: the text alone. */
const char *outcome_text(struct arena *arena, int code, struct bytes body);

#endif

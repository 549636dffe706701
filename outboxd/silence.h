/*
 * silence -- is it they who do not answer, or is it our own network?
 *
 * Several hosts silent in a row, with nobody answering in between: it is us,
 * and failures stop counting. Who answers clears everybody's doubt. Loop
 * thread only.
 */
#ifndef POSTRIDER_SILENCE_H
#define POSTRIDER_SILENCE_H

#include "common/base/base.h"

enum { SILENCE_HOSTS = 3, SILENCE_HOST_MAX = 280 };

struct silence {
	char hosts[SILENCE_HOSTS][SILENCE_HOST_MAX];
	size_t count;
	int64_t since_ms; /* steady: the last of them */
};

void silence_heard(struct silence *silence);
/* host was asked and said nothing; the same one counts once. */
void silence_of(struct silence *silence, const char *host);
bool silence_is_ours(const struct silence *silence);
/* How long to leave everything alone: the longer, the longer it lasts. */
int64_t silence_wait_ms(const struct silence *silence);

#endif

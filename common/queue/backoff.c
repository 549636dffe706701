#include "common/queue/backoff.h"

enum {
	REFUSAL_FIRST_S = 30,
	REFUSAL_LONGEST_S = 3600,
	INBOX_FIRST_S = 300,
	INBOX_LONGEST_S = 48 * 3600
};

/* clang-format off */
static const int64_t schedule_s[] = {
	30, 60, 5 * 60, 15 * 60, 3600, 6 * 3600, 24 * 3600
};
/* clang-format on */

int64_t backoff_s(int64_t attempt)
{
	int64_t last = (int64_t)COUNT(schedule_s) - 1;

	if (attempt < 1)
		return schedule_s[0];
	return schedule_s[attempt - 1 < last ? attempt - 1 : last];
}

int64_t backoff_refusal_s(int64_t count)
{
	int64_t wait = REFUSAL_FIRST_S;

	for (int64_t i = 1; i < count && wait < REFUSAL_LONGEST_S; i++)
		wait *= 2;
	return wait < REFUSAL_LONGEST_S ? wait : REFUSAL_LONGEST_S;
}

int64_t backoff_jitter_ms(int64_t seconds, uint32_t chance)
{
	return seconds * 1000 + seconds * (int64_t)(chance % 101);
}

int64_t backoff_spread_ms(int64_t seconds)
{
	return backoff_jitter_ms(seconds, arc4random());
}

int64_t backoff_inbox_ms(int64_t attempt, uint32_t chance)
{
	int64_t wait = INBOX_FIRST_S;

	for (int64_t i = 1; i < attempt && wait < INBOX_LONGEST_S; i++)
		wait *= 3;
	if (wait > INBOX_LONGEST_S)
		wait = INBOX_LONGEST_S;
	wait = wait * 1000 + wait * (int64_t)(chance % 201);
	return wait < INBOX_LONGEST_S * INT64_C(1000)
	    ? wait
	    : INBOX_LONGEST_S * INT64_C(1000);
}

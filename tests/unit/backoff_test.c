#include <criterion/criterion.h>

#include "common/queue/backoff.h"

Test(backoff, follows_the_schedule_and_stays_at_a_day)
{
	const int want[] = { 30, 60, 300, 900, 3600, 21600, 86400, 86400 };

	for (int i = 0; i < (int)COUNT(want); i++)
		cr_expect_eq(backoff_s(i + 1), want[i], "attempt %d", i + 1);
	cr_expect_eq(backoff_s(0), 30);
	cr_expect_eq(backoff_s(INT64_MAX), 86400);
}

Test(backoff, refused_entries_wait_twice_as_long_up_to_an_hour)
{
	const int want[] = { 30, 60, 120, 240, 480, 960, 1920, 3600, 3600 };

	for (int i = 0; i < (int)COUNT(want); i++)
		cr_expect_eq(
		    backoff_refusal_s(i + 1), want[i], "refusal %d", i + 1);
	cr_expect_eq(backoff_refusal_s(INT64_MAX), 3600);
}

Test(backoff, jitter_adds_up_to_a_tenth_and_never_shortens)
{
	int64_t least = INT64_MAX;
	int64_t most = 0;

	for (uint32_t chance = 0; chance < 1000; chance++) {
		int64_t ms = backoff_jitter_ms(30, chance);

		least = ms < least ? ms : least;
		most = ms > most ? ms : most;
	}
	cr_expect_eq(least, 30000);
	cr_expect_eq(most, 33000);
}

/* The contract's table, in minutes. */
Test(backoff, an_inbox_is_tried_after_five_minutes_to_two_days)
{
	const int want[] = { 5, 15, 45, 135, 405, 1215, 2880, 2880 };

	for (int i = 0; i < (int)COUNT(want); i++)
		cr_expect_eq(backoff_inbox_ms(i + 1, 0), want[i] * 60000,
		    "attempt %d", i + 1);
	cr_expect_eq(backoff_inbox_ms(0, 0), 300000);
	cr_expect_eq(backoff_inbox_ms(INT64_MAX, 200), 172800000);
	cr_expect_eq(backoff_inbox_ms(1, 200), 360000);
	cr_expect_eq(backoff_inbox_ms(1, 201), 300000);
}

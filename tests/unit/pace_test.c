#include <criterion/criterion.h>

#include "outboxd/pace.h"

enum { PEER = 7, MINUTE = 60 * 1000 };

static struct pace *pace;

static void begin(void)
{
	pace = pace_new();
}

static void end(void)
{
	pace_free(&pace);
}

TestSuite(pace, .init = begin, .fini = end);

/*
 * A peer that takes limit requests in each minute and answers 429 to others,
 * and a sender with ever more to send; how many it refused. A refusal names
 * the end of the minute.
 */
static int refusals_in(int64_t *now, int minutes, int limit, int *taken)
{
	int64_t end = *now + (int64_t)minutes * MINUTE;
	int64_t minute = -1;
	int count = 0;
	int refused = 0;

	*taken = 0;
	while (*now < end) {
		int64_t wait = pace_wait_ms(pace, PEER, *now);

		if (wait > 0) {
			*now += wait;
			continue;
		}
		if (*now / MINUTE != minute) {
			minute = *now / MINUTE;
			count = 0;
		}
		pace_sent(pace, PEER, *now);
		if (++count > limit) {
			refused++;
			pace_refused(pace, PEER, *now);
			*now = (minute + 1) * MINUTE;
			continue;
		}
		++*taken;
		*now += 5;
	}
	return refused;
}

Test(pace, nobody_waits_who_was_never_refused)
{
	for (int i = 0; i < 10000; i++) {
		pace_sent(pace, PEER, i);
		cr_assert_eq(pace_wait_ms(pace, PEER, i), 0);
	}
}

Test(pace, stays_close_below_what_the_peer_takes)
{
	static const int limits[] = { 40, 90, 600 };

	for (size_t i = 0; i < COUNT(limits); i++) {
		int64_t now = 1000 * MINUTE;
		int taken;

		end();
		begin();
		cr_expect_leq(refusals_in(&now, 2, limits[i], &taken), 2);
		/* Then ten minutes at full rate without a refusal. */
		cr_expect_eq(refusals_in(&now, 9, limits[i], &taken), 0,
		    "limit %d", limits[i]);
		cr_expect_geq(taken, 9 * limits[i] * 8 / 10, "limit %d: %d",
		    limits[i], taken);
	}
}

Test(pace, one_peer_slows_no_other)
{
	pace_sent(pace, PEER, 1000);
	pace_refused(pace, PEER, 1000);
	cr_expect_gt(pace_wait_ms(pace, PEER, 1000), 0);
	cr_expect_eq(pace_wait_ms(pace, PEER + 1, 1000), 0);
}

Test(pace, is_never_slower_than_the_least_and_forgets_by_and_by)
{
	int64_t now = 1000;

	for (int i = 0; i < 50; i++) {
		pace_sent(pace, PEER, now);
		pace_refused(pace, PEER, now);
	}
	cr_expect_eq(pace_limit(pace, PEER, now), PACE_LEAST);
	for (int minute = 0; minute < 120; minute++) {
		now += MINUTE;
		cr_expect_leq(pace_wait_ms(pace, PEER, now), 0);
	}
	cr_expect_eq(pace_limit(pace, PEER, now), 0);
}

/* The row of the peer says what the one before had learned. */
Test(pace, what_another_learned_holds_and_is_not_learned_anew)
{
	int64_t now = 1000 * MINUTE;
	int taken;

	pace_know(pace, PEER, 90, now - 2000);
	cr_expect_eq(pace_limit(pace, PEER, now), 81);
	cr_expect_eq(pace_wait_ms(pace, PEER, now), 0, "has sent nothing");
	cr_expect_eq(refusals_in(&now, 5, 90, &taken), 0);
	cr_expect_geq(taken, 5 * 90 * 8 / 10);
	pace_know(pace, PEER, 600, now - 10 * MINUTE);
	cr_expect_eq(pace_ceiling(pace, PEER), 90, "the later refusal counts");
	pace_know(pace, PEER, 0, now);
	cr_expect_eq(pace_ceiling(pace, PEER), 90);
}

/* The one before had sent most of the minute already. */
Test(pace, a_refusal_just_after_a_takeover_says_nothing_new)
{
	int64_t now = 1000 * MINUTE;

	pace_know(pace, PEER, 90, now);
	pace_sent(pace, PEER, now);
	pace_refused(pace, PEER, now);
	cr_expect_eq(pace_ceiling(pace, PEER), 90);
	cr_expect_eq(pace_limit(pace, PEER, now), 81);
}

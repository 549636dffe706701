#include <criterion/criterion.h>

#include "common/fediverse/breaker.h"

#define MINUTE INT64_C(60000)
#define DAY (24 * 60 * MINUTE)
#define NOW (INT64_C(20000) * DAY + 60 * MINUTE)

static struct breaker failed(int times, int64_t from, int64_t apart)
{
	struct breaker breaker = { .state = BREAKER_CLOSED };

	for (int i = 0; i < times; i++)
		breaker_failed(&breaker, from + i * apart, 0);
	return breaker;
}

Test(breaker, five_failures_in_ten_minutes_open_it)
{
	struct breaker four = failed(4, NOW, MINUTE);
	struct breaker five = failed(5, NOW, MINUTE);
	struct breaker slow = failed(5, NOW, 3 * MINUTE);

	cr_expect_eq(four.state, BREAKER_CLOSED);
	cr_expect_eq(five.state, BREAKER_OPEN);
	cr_expect_eq(five.not_before_ms, NOW + 34 * MINUTE);
	cr_expect_eq(slow.state, BREAKER_CLOSED);
}

Test(breaker, parallel_failures_are_one_and_give_it_a_moment)
{
	struct breaker breaker = failed(50, NOW, 10);

	cr_expect_eq(breaker.state, BREAKER_CLOSED);
	cr_expect_eq(breaker.failures, 1);
	cr_expect_eq(breaker_room(&breaker, NOW + 490, 4), 0);
	cr_expect_eq(breaker_room(&breaker, NOW + 1500, 4), 4);
}

Test(breaker, an_answer_between_begins_anew)
{
	struct breaker breaker = failed(4, NOW, MINUTE);

	breaker_answered(&breaker);
	for (int i = 0; i < 4; i++)
		breaker_failed(&breaker, NOW + (5 + i) * MINUTE, 0);
	cr_expect_eq(breaker.state, BREAKER_CLOSED);
}

Test(breaker, a_pause_ends_in_one_probe)
{
	struct breaker breaker = failed(5, NOW, MINUTE);
	int64_t over = breaker.not_before_ms;

	breaker_look(&breaker, over - 1);
	cr_expect_eq(breaker.state, BREAKER_OPEN);
	cr_expect_eq(breaker_room(&breaker, over - 1, 4), 0);
	breaker_look(&breaker, over);
	cr_expect_eq(breaker.state, BREAKER_HALF_OPEN);
	cr_expect_eq(breaker_room(&breaker, over, 4), 1);
	breaker_answered(&breaker);
	cr_expect_eq(breaker.state, BREAKER_CLOSED);
	cr_expect_eq(breaker_room(&breaker, over, 4), 4);
}

Test(breaker, failed_probes_double_the_pause_up_to_six_hours)
{
	const int want[] = { 60, 120, 240, 360, 360 };
	struct breaker breaker = failed(5, NOW, MINUTE);

	for (size_t i = 0; i < COUNT(want); i++) {
		int64_t now = breaker.not_before_ms;

		breaker_look(&breaker, now);
		breaker_failed(&breaker, now, 0);
		cr_expect_eq(breaker.state, BREAKER_OPEN);
		cr_expect_eq(breaker.not_before_ms - now, want[i] * MINUTE);
	}
	breaker_look(&breaker, breaker.not_before_ms);
	breaker_failed(&breaker, NOW + DAY, 200);
	cr_expect_eq(breaker.not_before_ms, NOW + DAY + 432 * MINUTE);
}

Test(breaker, seven_days_of_failures_kill_it)
{
	struct breaker breaker = failed(6, NOW, DAY);

	cr_expect_neq(breaker.state, BREAKER_DEAD);
	breaker_failed(&breaker, NOW + 6 * DAY, 0);
	cr_expect_eq(breaker.state, BREAKER_DEAD);
	cr_expect_eq(breaker.died_ms, NOW + 6 * DAY);
	cr_expect_not(breaker.gone);
	cr_expect_eq(breaker_room(&breaker, NOW + 99 * DAY, 4), 0);
	breaker_answered(&breaker);
	cr_expect_eq(breaker.state, BREAKER_DEAD, "not by a late answer");
}

Test(breaker, a_hold_is_kept_and_bounded)
{
	struct breaker breaker = { .state = BREAKER_CLOSED };

	breaker_hold(&breaker, NOW, 90 * MINUTE);
	breaker_hold(&breaker, NOW, MINUTE);
	breaker_answered(&breaker);
	cr_expect_eq(breaker_room(&breaker, NOW + 89 * MINUTE, 4), 0);
	cr_expect_eq(breaker_room(&breaker, NOW + 90 * MINUTE, 4), 4);
	breaker_hold(&breaker, NOW, 400 * DAY);
	cr_expect_eq(breaker.not_before_ms, NOW + 2 * DAY);
}

Test(breaker, gone_is_dead)
{
	struct breaker breaker = { .state = BREAKER_CLOSED };

	breaker_gone(&breaker, NOW);
	cr_expect_eq(breaker.state, BREAKER_DEAD);
	cr_expect(breaker.gone);
}

Test(breaker, states_round_trip_through_text)
{
	for (int i = BREAKER_CLOSED; i <= BREAKER_DEAD; i++) {
		enum breaker_state state = BREAKER_CLOSED;

		cr_expect(breaker_state_parse(
		    breaker_state_text((enum breaker_state)i), &state));
		cr_expect_eq(state, (enum breaker_state)i);
	}
	cr_expect_not(breaker_state_parse("ajar", &(enum breaker_state){ 0 }));
}

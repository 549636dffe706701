#include <pthread.h>
#include <signal.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/base/loop.h"

struct seen {
	struct loop *loop;
	char text[64];
};

static void add(struct seen *seen, char c)
{
	size_t len = strlen(seen->text);

	seen->text[len] = c;
	seen->text[len + 1] = '\0';
}

static void add_a(void *arg)
{
	add(arg, 'a');
}

static void add_b_and_stop(void *arg)
{
	struct seen *seen = arg;

	add(seen, 'b');
	loop_stop(seen->loop);
}

static void defer(void *arg)
{
	struct seen *seen = arg;

	loop_after_turn(seen->loop, add_a, seen);
	add(seen, 'd');
}

static void *call_from_thread(void *arg)
{
	struct seen *seen = arg;

	for (int i = 0; i < 5; i++)
		loop_call(seen->loop, add_a, seen);
	loop_call(seen->loop, add_b_and_stop, seen);
	return NULL;
}

Test(loop, calls_of_another_thread_run_on_the_loop_in_order)
{
	struct seen seen = { .loop = loop_new() };
	pthread_t thread;

	pthread_create(&thread, NULL, call_from_thread, &seen);
	loop_run(seen.loop);
	pthread_join(thread, NULL);
	cr_expect_str_eq(seen.text, "aaaaab");
	loop_free(&seen.loop);
	cr_expect_null(seen.loop);
}

Test(loop, what_is_deferred_runs_when_the_turn_is_over)
{
	struct seen seen = { .loop = loop_new() };

	loop_call(seen.loop, defer, &seen);
	loop_call(seen.loop, defer, &seen);
	loop_call(seen.loop, add_b_and_stop, &seen);
	loop_run(seen.loop);
	cr_expect_str_eq(seen.text, "ddbaa");
	loop_free(&seen.loop);
}

Test(loop, timers_fire_in_time_order_and_not_when_disarmed)
{
	struct seen seen = { .loop = loop_new() };
	struct loop_timer *late =
	    loop_timer_new(seen.loop, add_b_and_stop, &seen);
	struct loop_timer *early = loop_timer_new(seen.loop, add_a, &seen);
	struct loop_timer *never = loop_timer_new(seen.loop, defer, &seen);
	int64_t before = clock_steady_ms();

	loop_timer_arm(late, 30);
	loop_timer_arm(early, 5);
	loop_timer_arm(never, 1);
	loop_timer_disarm(never);
	loop_run(seen.loop);
	cr_expect_str_eq(seen.text, "ab");
	/* libevent's clock is coarse. */
	cr_expect_geq(clock_steady_ms() - before, 20);
	loop_timer_free(&late);
	loop_timer_free(&early);
	loop_timer_free(&never);
	loop_timer_free(&never);
	loop_free(&seen.loop);
}

Test(loop, signals_arrive_as_calls)
{
	struct seen seen = { .loop = loop_new() };

	loop_signal(seen.loop, SIGUSR1, add_b_and_stop, &seen);
	raise(SIGUSR1);
	loop_run(seen.loop);
	cr_expect_str_eq(seen.text, "b");
	loop_free(&seen.loop);
}

Test(loop, what_was_still_called_runs_when_it_is_freed)
{
	struct seen seen = { .loop = loop_new() };

	loop_call(seen.loop, add_a, &seen);
	loop_free(&seen.loop);
	cr_expect_str_eq(seen.text, "a");
}

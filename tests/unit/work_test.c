#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/work.h"

enum { ITEMS = 2000, THREADS = 4 };

struct bench {
	struct loop *loop;
	struct work_pool *pool;
	pthread_t loop_thread;
	atomic_int begun;
	atomic_int ended;
	atomic_int ran;
	int done;
	int want;
	int gate[2]; /* workers wait here until a byte comes */
};

struct item {
	struct bench *bench;
	int value;
};

static struct bench bench;

static void *begin(void *ctx)
{
	struct bench *b = ctx;

	atomic_fetch_add(&b->begun, 1);
	return b;
}

static void end(void *state)
{
	struct bench *b = state;

	atomic_fetch_add(&b->ended, 1);
}

static void start(size_t queue_max)
{
	const struct work_def def = { .threads = THREADS,
		.queue_max = queue_max,
		.worker_begin = begin,
		.worker_end = end,
		.ctx = &bench };

	bench.loop = loop_new();
	bench.loop_thread = pthread_self();
	cr_assert_eq(pipe(bench.gate), 0);
	bench.pool = work_pool_new(bench.loop, &def);
}

static void stop(void)
{
	work_pool_free(&bench.pool);
	loop_free(&bench.loop);
}

static void run_item(void *arg, void *state)
{
	struct item *item = arg;

	cr_assert_eq(state, item->bench, "a worker has its own state");
	cr_assert_not(pthread_equal(pthread_self(), bench.loop_thread));
	item->value *= 2;
	atomic_fetch_add(&item->bench->ran, 1);
}

static void run_gated(void *arg, void *state UNUSED)
{
	struct item *item = arg;
	char byte;

	cr_assert_eq(read(bench.gate[0], &byte, 1), 1);
	atomic_fetch_add(&item->bench->ran, 1);
}

static void done_item(void *arg)
{
	struct item *item = arg;

	cr_assert(pthread_equal(pthread_self(), bench.loop_thread));
	if (++item->bench->done == item->bench->want)
		loop_stop(item->bench->loop);
}

Test(work, every_item_runs_on_a_worker_and_is_done_on_the_loop)
{
	static struct item items[ITEMS];

	start(ITEMS);
	bench.want = ITEMS;
	for (int i = 0; i < ITEMS; i++) {
		items[i] = (struct item){ &bench, i };
		cr_assert(
		    work_submit(bench.pool, run_item, done_item, &items[i]));
	}
	loop_run(bench.loop);
	for (int i = 0; i < ITEMS; i++)
		cr_assert_eq(items[i].value, 2 * i);
	cr_expect_eq(work_waiting(bench.pool), 0);
	cr_expect_eq(work_running(bench.pool), 0);
	stop();
	cr_expect_eq(bench.begun, THREADS);
	cr_expect_eq(bench.ended, THREADS);
}

Test(work, a_full_queue_refuses_and_calls_nothing)
{
	struct item items[THREADS + 4];
	int taken = 0;

	start(2);
	for (size_t i = 0; i < COUNT(items); i++)
		items[i] = (struct item){ &bench, 0 };
	/* Workers take theirs one by one; wait until all of them are busy. */
	while (taken < THREADS)
		if (work_submit(
			bench.pool, run_gated, done_item, &items[taken]))
			taken++;
	while (work_running(bench.pool) < THREADS)
		sched_yield();
	for (size_t i = THREADS; i < COUNT(items); i++)
		taken +=
		    work_submit(bench.pool, run_gated, done_item, &items[i]);
	cr_expect_eq(taken, THREADS + 2);
	cr_expect_eq(work_waiting(bench.pool), 2);
	cr_expect_eq(write(bench.gate[1], "xxxxxxxx", (size_t)taken), taken);
	bench.want = taken;
	loop_run(bench.loop);
	cr_expect_eq(bench.ran, THREADS + 2);
	stop();
}

Test(work, free_runs_what_is_queued_and_calls_its_done)
{
	static struct item items[ITEMS];

	start(ITEMS);
	for (int i = 0; i < ITEMS; i++) {
		items[i] = (struct item){ &bench, i };
		cr_assert(
		    work_submit(bench.pool, run_item, done_item, &items[i]));
	}
	work_pool_free(&bench.pool);
	cr_expect_null(bench.pool);
	cr_expect_eq(bench.done, ITEMS);
	loop_free(&bench.loop);
	cr_expect_eq(bench.done, ITEMS);
}

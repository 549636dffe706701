/*
 * threads -- the loop, its workers, the log and the metrics at once.
 *
 * A program without Criterion, which does not start under ThreadSanitizer:
 *
 *	./configure --enable-tsan && make check
 *
 * What counts is what the sanitizer sees; the numbers only say that everything
 * ran. Values of items are plain on purpose: handing over is what makes them
 * safe to read.
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/work.h"

enum { THREADS = 4, ITEMS = 4000, QUEUE_MAX = 16, CALLERS = 3, CALLS = 2000 };

struct site {
	struct loop *loop;
	struct work_pool *pool;
	struct loop_timer *timer;
	int submitted;
	int done;
	int called;
	int64_t sum;
};

struct item {
	struct site *site;
	int64_t value;
};

/* The state of a worker: no other thread may look at it. */
struct worker {
	int64_t ran;
};

static struct metric ran = {
	.name = "ran_total",
	.help = "Items that a worker has run.",
	.type = METRIC_COUNTER,
};

static void *worker_begin(void *ctx UNUSED)
{
	return calloc(1, sizeof(struct worker));
}

static void worker_end(void *state)
{
	free(state);
}

static void run(void *arg, void *state)
{
	struct item *item = arg;
	struct worker *worker = state;

	worker->ran++;
	item->value *= 2;
	metric_add(&ran, 0, 1);
	log_info("item.ran", F("queue", v_int(item->value)));
}

static void look(struct site *site)
{
	if (site->done == ITEMS && site->called == CALLERS * CALLS)
		loop_stop(site->loop);
}

static void done(void *arg)
{
	struct item *item = arg;
	struct site *site = item->site;

	site->done++;
	site->sum += item->value;
	free(item);
	look(site);
}

/* As much as the queue takes, again and again. */
static void submit(void *arg)
{
	struct site *site = arg;

	while (site->submitted < ITEMS) {
		struct item *item = calloc(1, sizeof(*item));

		assert(item);
		item->site = site;
		item->value = site->submitted;
		if (!work_submit(site->pool, run, done, item)) {
			free(item);
			loop_timer_arm(site->timer, 1);
			return;
		}
		site->submitted++;
	}
}

static void called(void *arg)
{
	struct site *site = arg;

	site->called++;
	look(site);
}

static void *call(void *arg)
{
	struct site *site = arg;

	for (int i = 0; i < CALLS; i++) {
		loop_call(site->loop, called, site);
		clock_shift_ms(1);
		log_debug("call.made", F("queue", v_int(clock_wall_ms())));
	}
	return NULL;
}

int main(void)
{
	static const struct work_def def = {
		.threads = THREADS,
		.queue_max = QUEUE_MAX,
		.worker_begin = worker_begin,
		.worker_end = worker_end,
	};
	struct site site = { .loop = loop_new() };
	pthread_t callers[CALLERS];
	bool whole;

	log_output_set(open("/dev/null", O_WRONLY));
	metrics_register(&ran);
	site.pool = work_pool_new(site.loop, &def);
	site.timer = loop_timer_new(site.loop, submit, &site);
	loop_timer_arm(site.timer, 0);
	for (int i = 0; i < CALLERS; i++)
		pthread_create(&callers[i], NULL, call, &site);
	loop_run(site.loop);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	whole = site.sum == (int64_t)ITEMS * (ITEMS - 1);
	loop_timer_free(&site.timer);
	work_pool_free(&site.pool);
	loop_free(&site.loop);
	printf("%d items, %d calls\n", site.done, site.called);
	return whole ? 0 : 1;
}

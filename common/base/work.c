#include <pthread.h>
#include <signal.h>

#include "common/base/clock.h"
#include "common/base/metrics.h"
#include "common/base/work.h"

struct job {
	struct job *next;
	void (*run)(void *item, void *state);
	void (*done)(void *item);
	void *item;
	int64_t submitted_us;
};

struct jobs {
	struct job *first;
	struct job **end;
};

struct work_pool {
	struct loop *loop;
	struct work_def def;
	pthread_t *threads;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* Under the mutex. */
	struct jobs queue;
	struct jobs finished;
	size_t waiting;
	size_t running;
	bool told; /* the loop knows that something is finished */
	bool stopping;
};

static struct metric queue_seconds = {
	.name = "worker_queue_seconds",
	.help = "Time a unit of work waits for a worker.",
	.type = METRIC_HISTOGRAM,
};

static void jobs_init(struct jobs *jobs)
{
	jobs->first = NULL;
	jobs->end = &jobs->first;
}

static void jobs_add(struct jobs *jobs, struct job *job)
{
	job->next = NULL;
	*jobs->end = job;
	jobs->end = &job->next;
}

static struct job *jobs_take(struct jobs *jobs)
{
	struct job *job = jobs->first;

	jobs->first = job->next;
	if (!jobs->first)
		jobs->end = &jobs->first;
	return job;
}

/* On the loop: give back what is finished. */
static void give_back(void *arg)
{
	struct work_pool *pool = arg;
	struct job *job;

	pthread_mutex_lock(&pool->mutex);
	job = pool->finished.first;
	jobs_init(&pool->finished);
	pool->told = false;
	pthread_mutex_unlock(&pool->mutex);
	while (job) {
		struct job *next = job->next;

		job->done(job->item);
		free(job);
		job = next;
	}
}

/* With the mutex held; true when there is a job, false at the end. */
static bool job_wait(struct work_pool *pool)
{
	while (!pool->queue.first && !pool->stopping)
		pthread_cond_wait(&pool->wake, &pool->mutex);
	return pool->queue.first != NULL;
}

/* With the mutex held, which is released while the job runs. */
static void job_run(struct work_pool *pool, void *state)
{
	struct job *job = jobs_take(&pool->queue);
	bool tell;

	pool->waiting--;
	pool->running++;
	pthread_mutex_unlock(&pool->mutex);
	metric_observe_us(
	    &queue_seconds, 0, clock_steady_us() - job->submitted_us);
	job->run(job->item, state);
	pthread_mutex_lock(&pool->mutex);
	pool->running--;
	jobs_add(&pool->finished, job);
	tell = !pool->told;
	pool->told = true;
	if (tell)
		loop_call(pool->loop, give_back, pool);
}

static void *worker(void *arg)
{
	struct work_pool *pool = arg;
	void *state = NULL;

	if (pool->def.worker_begin)
		state = pool->def.worker_begin(pool->def.ctx);
	pthread_mutex_lock(&pool->mutex);
	while (job_wait(pool))
		job_run(pool, state);
	pthread_mutex_unlock(&pool->mutex);
	if (pool->def.worker_end)
		pool->def.worker_end(state);
	return NULL;
}

/* Signals are the loop thread's. */
static void threads_start(struct work_pool *pool)
{
	sigset_t all;
	sigset_t old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (int i = 0; i < pool->def.threads; i++)
		if (pthread_create(&pool->threads[i], NULL, worker, pool) != 0)
			abort();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

struct work_pool *work_pool_new(struct loop *loop, const struct work_def *def)
{
	struct work_pool *pool = calloc(1, sizeof(*pool));

	assert(def->threads > 0);
	metrics_register(&queue_seconds);
	if (!pool)
		abort();
	pool->loop = loop;
	pool->def = *def;
	jobs_init(&pool->queue);
	jobs_init(&pool->finished);
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->wake, NULL);
	pool->threads = calloc((size_t)def->threads, sizeof(*pool->threads));
	if (!pool->threads)
		abort();
	threads_start(pool);
	return pool;
}

static void pool_release(void *arg)
{
	struct work_pool *pool = arg;

	pthread_mutex_destroy(&pool->mutex);
	pthread_cond_destroy(&pool->wake);
	free(pool->threads);
	free(pool);
}

void work_pool_free(struct work_pool **owner)
{
	struct work_pool *pool = *owner;

	if (!pool)
		return;
	pthread_mutex_lock(&pool->mutex);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->wake);
	pthread_mutex_unlock(&pool->mutex);
	for (int i = 0; i < pool->def.threads; i++)
		pthread_join(pool->threads[i], NULL);
	give_back(pool);
	/* The loop may still hold a call of give_back, which comes first. */
	loop_call(pool->loop, pool_release, pool);
	*owner = NULL;
}

bool work_submit(struct work_pool *pool, void (*run)(void *item, void *state),
    void (*done)(void *item), void *item)
{
	struct job *job = calloc(1, sizeof(*job));
	bool taken;

	if (!job)
		abort();
	*job = (struct job){ .run = run,
		.done = done,
		.item = item,
		.submitted_us = clock_steady_us() };
	pthread_mutex_lock(&pool->mutex);
	taken = !pool->stopping && pool->waiting < pool->def.queue_max;
	if (taken) {
		jobs_add(&pool->queue, job);
		pool->waiting++;
		pthread_cond_signal(&pool->wake);
	}
	pthread_mutex_unlock(&pool->mutex);
	if (!taken)
		free(job);
	return taken;
}

/* The mutex is a way of reading, not of changing. */
static size_t read_count(const struct work_pool *pool, const size_t *count)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)&pool->mutex;
	size_t value;

	pthread_mutex_lock(mutex);
	value = *count;
	pthread_mutex_unlock(mutex);
	return value;
}

size_t work_waiting(const struct work_pool *pool)
{
	return read_count(pool, &pool->waiting);
}

size_t work_running(const struct work_pool *pool)
{
	return read_count(pool, &pool->running);
}

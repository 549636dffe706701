#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/clock.h"
#include "common/base/loop.h"

enum { TICK_MS = 250, SIGNALS_MAX = 8 };

/* A call that waits for its turn. */
struct call {
	struct call *next;
	void (*call)(void *arg);
	void *arg;
};

struct calls {
	struct call *first;
	struct call **end;
};

struct loop_signal {
	struct event *event;
	void (*call)(void *arg);
	void *arg;
};

struct loop {
	struct event_base *base;
	struct event *tick;
	struct event *called;
	int wake_fd;
	bool stopped;
	int64_t tick_us;
	int64_t lag_us;
	struct calls after_turn;
	struct loop_signal signals[SIGNALS_MAX];
	int signal_count;
	/* What other threads touch. */
	pthread_mutex_t mutex;
	struct calls calls;
};

struct loop_timer {
	struct event *event;
	void (*call)(void *arg);
	void *arg;
};

static void *must(void *made)
{
	if (!made)
		abort();
	return made;
}

static struct timeval to_timeval(int64_t ms)
{
	return (
	    struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}

static void calls_add(struct calls *calls, void (*call)(void *arg), void *arg)
{
	struct call *entry = must(calloc(1, sizeof(*entry)));

	entry->call = call;
	entry->arg = arg;
	*calls->end = entry;
	calls->end = &entry->next;
}

static struct call *calls_take(struct calls *calls)
{
	struct call *first = calls->first;

	calls->first = NULL;
	calls->end = &calls->first;
	return first;
}

static void calls_run(struct call *entry)
{
	while (entry) {
		struct call *next = entry->next;

		entry->call(entry->arg);
		free(entry);
		entry = next;
	}
}

static void on_called(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct loop *loop = arg;
	struct call *first;
	uint64_t count;

	/* The count does not matter; reading it makes the socket quiet. */
	if (read(fd, &count, sizeof(count)) < 0)
		count = 0;
	pthread_mutex_lock(&loop->mutex);
	first = calls_take(&loop->calls);
	pthread_mutex_unlock(&loop->mutex);
	calls_run(first);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct loop *loop = arg;
	int64_t now = clock_steady_us();
	int64_t late = now - loop->tick_us - TICK_MS * 1000;
	struct timeval wait = to_timeval(TICK_MS);

	loop->lag_us = late > 0 ? late : 0;
	loop->tick_us = now;
	event_add(loop->tick, &wait);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct loop_timer *timer = arg;

	timer->call(timer->arg);
}

static void on_signal(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct loop_signal *sig = arg;

	sig->call(sig->arg);
}

struct loop *loop_new(void)
{
	struct event_config *config = must(event_config_new());
	struct loop *loop = must(calloc(1, sizeof(*loop)));
	struct timeval wait = to_timeval(TICK_MS);

	/* Only loop_call crosses threads, and it has a mutex of its own. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	loop->base = must(event_base_new_with_config(config));
	event_config_free(config);
	pthread_mutex_init(&loop->mutex, NULL);
	loop->calls.end = &loop->calls.first;
	loop->after_turn.end = &loop->after_turn.first;
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->wake_fd < 0)
		abort();
	loop->called = must(event_new(
	    loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_called, loop));
	loop->tick = must(event_new(loop->base, -1, 0, on_tick, loop));
	loop->tick_us = clock_steady_us();
	event_add(loop->called, NULL);
	event_add(loop->tick, &wait);
	return loop;
}

static void turn_end(struct loop *loop)
{
	struct call *first;

	while ((first = calls_take(&loop->after_turn)) != NULL)
		calls_run(first);
}

void loop_free(struct loop **owner)
{
	struct loop *loop = *owner;

	if (!loop)
		return;
	on_called(loop->wake_fd, 0, loop);
	turn_end(loop);
	for (int i = 0; i < loop->signal_count; i++)
		event_free(loop->signals[i].event);
	event_free(loop->called);
	event_free(loop->tick);
	event_base_free(loop->base);
	close(loop->wake_fd);
	pthread_mutex_destroy(&loop->mutex);
	free(loop);
	*owner = NULL;
}

void loop_run(struct loop *loop)
{
	loop->stopped = false;
	loop->tick_us = clock_steady_us();
	while (!loop->stopped) {
		event_base_loop(loop->base, EVLOOP_ONCE);
		turn_end(loop);
	}
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
	event_base_loopbreak(loop->base);
}

struct event_base *loop_base(struct loop *loop)
{
	return loop->base;
}

struct loop_timer *loop_timer_new(
    struct loop *loop, void (*call)(void *arg), void *arg)
{
	struct loop_timer *timer = must(calloc(1, sizeof(*timer)));

	timer->call = call;
	timer->arg = arg;
	timer->event = must(event_new(loop->base, -1, 0, on_timer, timer));
	return timer;
}

void loop_timer_arm(struct loop_timer *timer, int64_t ms)
{
	struct timeval wait = to_timeval(ms > 0 ? ms : 0);

	event_add(timer->event, &wait);
}

void loop_timer_disarm(struct loop_timer *timer)
{
	event_del(timer->event);
}

void loop_timer_free(struct loop_timer **timer)
{
	if (!*timer)
		return;
	event_free((*timer)->event);
	free(*timer);
	*timer = NULL;
}

void loop_signal(
    struct loop *loop, int number, void (*call)(void *arg), void *arg)
{
	struct loop_signal *sig = &loop->signals[loop->signal_count++];

	assert(loop->signal_count <= SIGNALS_MAX);
	sig->call = call;
	sig->arg = arg;
	sig->event = must(event_new(
	    loop->base, number, EV_SIGNAL | EV_PERSIST, on_signal, sig));
	event_add(sig->event, NULL);
}

void loop_call(struct loop *loop, void (*call)(void *arg), void *arg)
{
	uint64_t one = 1;

	pthread_mutex_lock(&loop->mutex);
	calls_add(&loop->calls, call, arg);
	pthread_mutex_unlock(&loop->mutex);
	/* It can only fail because the count is full: then it is readable. */
	if (write(loop->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void loop_after_turn(struct loop *loop, void (*call)(void *arg), void *arg)
{
	calls_add(&loop->after_turn, call, arg);
}

int64_t loop_lag_us(const struct loop *loop)
{
	return loop->lag_us;
}

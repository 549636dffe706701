#include <stdatomic.h>
#include <time.h>

#include "common/base/clock.h"

/* Moved by tests only. */
static _Atomic int64_t shift_ms;

static int64_t now_us(clockid_t which)
{
	struct timespec now;

	clock_gettime(which, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 +
	    atomic_load_explicit(&shift_ms, memory_order_relaxed) * 1000;
}

int64_t clock_wall_ms(void)
{
	return now_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_steady_ms(void)
{
	return now_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_steady_us(void)
{
	return now_us(CLOCK_MONOTONIC);
}

void clock_shift_ms(int64_t ms)
{
	atomic_fetch_add(&shift_ms, ms);
}

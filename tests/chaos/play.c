#include "tests/chaos/play.h"

#include "common/base/clock.h"
#include "tests/chaos/check.h"

enum { TURN_MS = 5, LOOK_MS = 50, RETRY_AGAIN_MS = 2000 };

bool play_faults(struct faults *faults, int ms, play_done *done,
    const void *people, struct err *err)
{
	int64_t until = clock_steady_ms() + ms;

	while (!chaos_interrupted() && !done(people) &&
	    clock_steady_ms() < until) {
		site_supervise(faults->site);
		if (!faults_turn(faults, err))
			return false;
		pause_ms(TURN_MS);
	}
	return true;
}

int64_t play_recovery(struct site *site, const struct options *options,
    play_done *done, const void *people, int64_t *people_ms)
{
	int64_t start = clock_steady_ms();
	int64_t until = start + options->drain_s * 1000;
	int64_t retry = start;

	while (!chaos_interrupted() && clock_steady_ms() < until) {
		site_supervise(site);
		if (options->operator_retries && clock_steady_ms() >= retry) {
			faults_retry(site);
			retry = clock_steady_ms() + RETRY_AGAIN_MS;
		}
		if (!done(people))
			*people_ms = clock_steady_ms() - start;
		else if (check_drained(site))
			return clock_steady_ms() - start;
		pause_ms(LOOK_MS);
	}
	return -1;
}

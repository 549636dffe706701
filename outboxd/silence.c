#include "outboxd/silence.h"

#include "common/base/clock.h"

enum { WAIT_MIN_MS = 60 * 1000, WAIT_MAX_MS = 15 * 60 * 1000 };

static bool is_noted(const struct silence *silence, const char *host)
{
	for (size_t i = 0; i < silence->count; i++)
		if (strcmp(silence->hosts[i], host) == 0)
			return true;
	return false;
}

void silence_heard(struct silence *silence)
{
	silence->count = 0;
}

void silence_of(struct silence *silence, const char *host)
{
	if (silence_is_ours(silence) || is_noted(silence, host))
		return;
	snprintf(
	    silence->hosts[silence->count++], SILENCE_HOST_MAX, "%s", host);
	silence->since_ms = clock_steady_ms();
}

bool silence_is_ours(const struct silence *silence)
{
	return silence->count == SILENCE_HOSTS;
}

int64_t silence_wait_ms(const struct silence *silence)
{
	int64_t lasts_ms = clock_steady_ms() - silence->since_ms;

	if (lasts_ms < WAIT_MIN_MS)
		return WAIT_MIN_MS;
	return lasts_ms < WAIT_MAX_MS ? lasts_ms : WAIT_MAX_MS;
}

#include "outboxd/elsewhere.h"

static size_t place_of(const struct elsewhere *elsewhere, int64_t peer)
{
	for (size_t i = 0; i < ELSEWHERE_MAX; i++)
		if (elsewhere->list[i].peer == peer)
			return i;
	return ELSEWHERE_MAX;
}

void elsewhere_note(struct elsewhere *elsewhere, int64_t peer, int64_t now)
{
	size_t place = place_of(elsewhere, peer);

	if (place == ELSEWHERE_MAX)
		place = elsewhere->next++ % ELSEWHERE_MAX;
	elsewhere->list[place].peer = peer;
	elsewhere->list[place].until = now + ELSEWHERE_MS;
}

void elsewhere_forget(struct elsewhere *elsewhere, int64_t peer)
{
	size_t place = place_of(elsewhere, peer);

	if (place < ELSEWHERE_MAX)
		elsewhere->list[place].until = 0;
}

bool elsewhere_is(const struct elsewhere *elsewhere, int64_t peer, int64_t now)
{
	size_t place = place_of(elsewhere, peer);

	return place < ELSEWHERE_MAX && now < elsewhere->list[place].until;
}

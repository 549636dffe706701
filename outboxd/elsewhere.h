/*
 * elsewhere -- peers that were found leased by somebody else.
 *
 * Every outboxd hears every signal. Who has just tried to claim a peer that
 * somebody else has leaves its signals to whoever has it for half a second: of
 * many outboxd all but one would ask for nothing each time. Should the holder
 * be gone, who frees his leases and the look of every second find what waits.
 *
 * Times are steady ms. Loop thread only.
 */
#ifndef POSTRIDER_ELSEWHERE_H
#define POSTRIDER_ELSEWHERE_H

#include "common/base/base.h"

enum { ELSEWHERE_MS = 500, ELSEWHERE_MAX = 64 };

/* All zero: nobody. The oldest is forgotten for a new one. */
struct elsewhere {
	size_t next;
	struct {
		int64_t peer;
		int64_t until;
	} list[ELSEWHERE_MAX];
};

void elsewhere_note(struct elsewhere *elsewhere, int64_t peer, int64_t now);
void elsewhere_forget(struct elsewhere *elsewhere, int64_t peer);
bool elsewhere_is(const struct elsewhere *elsewhere, int64_t peer, int64_t now);

#endif

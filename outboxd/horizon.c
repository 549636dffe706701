#include "outboxd/horizon.h"

enum { SNAPSHOT_MAX = 1 << 20 };

void horizon_init(struct horizon *horizon)
{
	*horizon = (struct horizon){ 0 };
	buf_init(&horizon->seen, NULL, SNAPSHOT_MAX);
}

void horizon_done(struct horizon *horizon)
{
	buf_done(&horizon->seen);
}

const char *horizon_seen(const struct horizon *horizon)
{
	return horizon->busy ? horizon->seen.data : NULL;
}

void horizon_note(struct horizon *horizon, const char *snapshot, int64_t cursor)
{
	char *end;
	int64_t oldest = strtoll(snapshot, &end, 10);
	int64_t next = *end == ':' ? strtoll(end + 1, NULL, 10) : oldest + 1;

	if (oldest >= horizon->mark_after) {
		if (horizon->mark > horizon->floor)
			horizon->floor = horizon->mark;
		horizon->mark = cursor;
		horizon->mark_after = next;
	}
	horizon->busy = oldest < next;
	buf_clear(&horizon->seen);
	buf_text(&horizon->seen, snapshot);
}

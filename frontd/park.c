#include "common/base/clock.h"
#include "frontd/park.h"
#include "frontd/park.sql.h"

enum { LOOK_MS = 1000, RETRY_MS = 50, HEARD_MAX = 256 };

struct parking {
	struct dispatch *dispatch;
	struct loop_timer *timer;
	struct call *parked;
	struct call *held;
	size_t count;
	int64_t next_look_ms; /* steady */
	bool looking;
	/* What was heard lately: an answer may be quicker than the parking. */
	int64_t heard[HEARD_MAX];
	size_t heard_next;
};

/* A look is a unit of work of its own, with its own arena. */
struct look {
	struct parking *parking;
	struct arena *arena;
	int64_t *ids;
	size_t count;
	struct rows answered;
	bool ok;
};

struct answered {
	int64_t id;
};

static const struct shape answered_shape[] = {
	SHAPE(ID, struct answered, id, NULL),
	SHAPE_END(struct answered),
};

/* ---- lists ---- */

static struct call *list_take_due(struct call **list, int64_t now_ms)
{
	for (; *list; list = &(*list)->next) {
		struct call *call = *list;

		if (call->due_ms > now_ms)
			continue;
		*list = call->next;
		return call;
	}
	return NULL;
}

static void list_add(struct call **list, struct call *call)
{
	call->next = *list;
	*list = call;
}

static int64_t list_wait_ms(
    const struct call *list, int64_t now_ms, int64_t wait_ms)
{
	for (; list; list = list->next)
		if (list->due_ms - now_ms < wait_ms)
			wait_ms = list->due_ms - now_ms;
	return wait_ms;
}

static void timer_set(struct parking *parking)
{
	int64_t now_ms = clock_wall_ms();
	int64_t wait_ms = LOOK_MS;

	if (!parking->parked && !parking->held)
		return;
	wait_ms = list_wait_ms(parking->parked, now_ms, wait_ms);
	wait_ms = list_wait_ms(parking->held, now_ms, wait_ms);
	loop_timer_arm(parking->timer, wait_ms > 0 ? wait_ms : 1);
}

/* ---- going on ---- */

/* Calls that are due go to a worker; when all are taken, a little later. */
static void resume_due(struct parking *parking)
{
	int64_t now_ms = clock_wall_ms();
	struct call *call;

	while ((call = list_take_due(&parking->parked, now_ms)) != NULL) {
		if (call_submit(call)) {
			parking->count--;
			continue;
		}
		call->due_ms = now_ms + RETRY_MS;
		list_add(&parking->parked, call);
		return;
	}
}

static void send_due(struct parking *parking)
{
	int64_t now_ms = clock_wall_ms();
	struct call *call;

	while ((call = list_take_due(&parking->held, now_ms)) != NULL)
		call_send(call);
}

static bool waits_for(const struct call *call, int64_t ask)
{
	for (size_t i = 0; i < call->req.parked_count; i++)
		if (call->req.parked_asks[i] == ask)
			return true;
	return false;
}

/* More than one may wait for an answer; who waits for several looks again. */
static bool answer_came(struct parking *parking, int64_t ask)
{
	bool awaited = false;

	for (struct call *call = parking->parked; call; call = call->next)
		if (waits_for(call, ask)) {
			call->due_ms = 0;
			awaited = true;
		}
	return awaited;
}

/* ---- the look ---- */

static void look_run(void *arg, void *state)
{
	struct look *look = arg;
	struct worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, look->arena);
	struct err err;

	look->ok = sql_many(tx, &SQL_park_answered, answered_shape,
		       &look->answered, &err, v_ids(look->ids, look->count)) &&
	    tx_commit(tx, &err);
}

static void look_done(void *arg)
{
	struct look *look = arg;
	struct parking *parking = look->parking;
	const struct answered *answered = look->answered.items;
	struct arena *arena = look->arena;

	parking->looking = false;
	for (size_t i = 0; look->ok && i < look->answered.count; i++)
		answer_came(parking, answered[i].id);
	arena_free(&arena);
	resume_due(parking);
	timer_set(parking);
}

static size_t asks_count(const struct parking *parking)
{
	size_t count = 0;

	for (struct call *call = parking->parked; call; call = call->next)
		count += call->req.parked_count;
	return count;
}

void parking_look(struct parking *parking)
{
	struct arena *arena;
	struct look *look;

	if (parking->looking || !parking->parked || parking->dispatch->stopping)
		return;
	arena = arena_new();
	look = ARENA_NEW(arena, struct look);
	look->parking = parking;
	look->arena = arena;
	look->ids = arena_array(arena, asks_count(parking), sizeof(int64_t));
	for (struct call *call = parking->parked; call; call = call->next)
		for (size_t i = 0; i < call->req.parked_count; i++)
			look->ids[look->count++] = call->req.parked_asks[i];
	parking->next_look_ms = clock_steady_ms() + LOOK_MS;
	parking->looking =
	    work_submit(parking->dispatch->pool, look_run, look_done, look);
	if (!parking->looking)
		arena_free(&arena);
}

static void parking_tick(void *arg)
{
	struct parking *parking = arg;

	send_due(parking);
	resume_due(parking);
	if (clock_steady_ms() >= parking->next_look_ms)
		parking_look(parking);
	timer_set(parking);
}

/* ---- from outside ---- */

/* Was an answer signalled before it was parked? A hint counts once. */
static bool was_heard(struct parking *parking, const struct call *call)
{
	bool heard = false;

	for (size_t i = 0; i < HEARD_MAX; i++)
		if (parking->heard[i] && waits_for(call, parking->heard[i])) {
			parking->heard[i] = 0;
			heard = true;
		}
	return heard;
}

bool parking_add(struct parking *parking, struct call *call)
{
	if (parking->count >= PARKED_MAX)
		return false;
	if (!parking->parked)
		parking->next_look_ms = clock_steady_ms() + LOOK_MS;
	parking->count++;
	call->due_ms = was_heard(parking, call) ? 0 : call->deadline_ms;
	list_add(&parking->parked, call);
	resume_due(parking);
	timer_set(parking);
	return true;
}

void parking_hold(struct parking *parking, struct call *call)
{
	list_add(&parking->held, call);
	timer_set(parking);
}

void parking_hint(struct parking *parking, int64_t ask)
{
	if (!answer_came(parking, ask)) {
		parking->heard[parking->heard_next++ % HEARD_MAX] = ask;
		return;
	}
	resume_due(parking);
	timer_set(parking);
}

size_t parking_count(const struct parking *parking)
{
	return parking->count;
}

struct parking *parking_new(struct dispatch *dispatch)
{
	struct parking *parking = calloc(1, sizeof(*parking));

	if (!parking)
		abort();
	parking->dispatch = dispatch;
	parking->timer = loop_timer_new(dispatch->loop, parking_tick, parking);
	return parking;
}

static struct call *list_take(struct call **list)
{
	struct call *call = *list;

	if (call)
		*list = call->next;
	return call;
}

void parking_free(struct parking **parking)
{
	struct call *call;

	if (!*parking)
		return;
	while ((call = list_take(&(*parking)->parked)) != NULL)
		call_give_up(call);
	while ((call = list_take(&(*parking)->held)) != NULL)
		call_send(call);
	loop_timer_free(&(*parking)->timer);
	free(*parking);
	*parking = NULL;
}

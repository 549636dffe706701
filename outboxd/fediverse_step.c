#include <utlist.h>

#include "common/base/clock.h"
#include "outboxd/fediverse_figures.h"
#include "outboxd/fediverse_parts.h"

enum {
	STEPS_MAX = 2,	   /* at a time: others sign meanwhile */
	STEP_DOMAINS = 16, /* of one step */
	READ_MAX = 32,	   /* rows of a domain */
	AGAIN_MS = 1000
};

/* What a step does for one of its domains. */
struct part {
	struct fediverse_domain *domain;
	struct attempt *settling;
	bool reads;
	/* what it found */
	int room;
	bool more; /* rows that are due */
	bool more_dead;
};

/* What a worker does for some domains: write, bury, read. */
struct fediverse_step {
	struct fediverse *all;
	struct arena *arena;
	size_t count;
	struct part *parts;
	struct outbound_visit *visits; /* of the same domains */
	const char **under_way;
	size_t under_way_count;
	struct rows items;
	bool failed;
	struct err err;
};

/* ---- the worker's side ---- */

static bool may_read(const struct fediverse_step *step, size_t i)
{
	return step->visits[i].held && step->parts[i].reads &&
	    step->parts[i].room > 0;
}

/* The last thing a step does. */
static bool step_read(
    struct fediverse_step *step, struct tx *tx, struct err *err)
{
	struct arena *arena = step->arena;
	struct outbound_reading reading = {
		.domains = arena_array(arena, step->count, sizeof(char *)),
		.limits = arena_array(arena, step->count, sizeof(int64_t)),
		.more = arena_array(arena, step->count, sizeof(bool)),
		.under_way = step->under_way,
		.under_way_count = step->under_way_count,
	};
	size_t told = 0;

	for (size_t i = 0; i < step->count; i++) {
		if (!may_read(step, i))
			continue;
		reading.domains[reading.count] = step->visits[i].lease.domain;
		reading.limits[reading.count++] =
		    step->parts[i].room == 1 ? 1 : READ_MAX;
	}
	if (reading.count == 0)
		return true;
	tx_closing(tx);
	if (!outbound_read(tx, &reading, &step->items, err))
		return false;
	for (size_t i = 0; i < step->count; i++)
		if (may_read(step, i))
			step->parts[i].more = reading.more[told++];
	return true;
}

static int room_of(const struct outbound_domain *domain)
{
	return domain->on ? breaker_room(&domain->breaker, clock_wall_ms(),
				FEDIVERSE_PER_DOMAIN)
			  : 0;
}

static bool part_look(struct part *part, const struct outbound_visit *visit,
    struct tx *tx, struct err *err)
{
	const struct outbound_domain *domain = &visit->domain;
	const struct breaker *breaker = &domain->breaker;

	part->room = room_of(domain);
	return (breaker->state != BREAKER_DEAD && !domain->blocked) ||
	    outbound_bury(tx, domain, &part->more_dead, err);
}

static bool step_do(struct fediverse_step *step, struct tx *tx, struct err *err)
{
	if (!outbound_lock(tx, step->visits, step->count, err) ||
	    !outbound_settle(tx, step->visits, step->count, err))
		return false;
	for (size_t i = 0; i < step->count; i++)
		if (step->visits[i].held &&
		    !part_look(&step->parts[i], &step->visits[i], tx, err))
			return false;
	return step_read(step, tx, err);
}

static void step_run(void *item, void *state)
{
	struct fediverse_step *step = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, step->arena);

	/* What is lost with a crash is sent again, and known as a repeat. */
	tx_lazy(tx);
	step->failed =
	    !step_do(step, tx, &step->err) || !tx_commit(tx, &step->err);
}

/* ---- what came of it ---- */

/* What could not be written is kept, and written later; then each domain is on
 * its own, for one of them may be why. */
static void part_undo(const struct fediverse_step *step, size_t i)
{
	struct fediverse_domain *d = step->parts[i].domain;

	log_warn("activity.unwritten", F("peer", v_text(d->lease.domain)),
	    F("err", v_text(step->err.text)));
	DL_CONCAT(d->ended, step->parts[i].settling);
	d->ended_count += step->visits[i].count;
	d->news = true;
	d->alone = true;
	d->not_before = clock_steady_ms() + AGAIN_MS;
}

static void count_ended(const struct outbound_visit *visit)
{
	int64_t ended = 0;

	for (size_t i = 0; visit->held && i < visit->count; i++)
		ended += visit->results[i].outcome.fate != FATE_RETRY;
	metric_add(&figure_activities_ended, 0, ended);
}

static void row_learn(
    struct fediverse_domain *d, const struct outbound_domain *row, int room)
{
	d->room = room;
	d->well = row->well && row->breaker.failure_days == 0;
}

static void row_add(struct fediverse_domain *d,
    const struct outbound_domain *row, const struct outbound_item *item)
{
	struct attempt *a = attempt_new(d, row, item);

	DL_APPEND(d->ready, a);
	d->ready_count++;
}

static void rows_take(struct fediverse_domain *d,
    const struct fediverse_step *step, const struct outbound_domain *row)
{
	const struct outbound_item *items = step->items.items;

	for (size_t i = 0; i < step->items.count; i++)
		if (strcmp(items[i].target_domain, d->lease.domain) == 0)
			row_add(d, row, &items[i]);
}

static void part_take(const struct fediverse_step *step, size_t i)
{
	struct part *part = &step->parts[i];
	const struct outbound_visit *visit = &step->visits[i];
	const struct outbound_domain *row = &visit->domain;
	struct fediverse_domain *d = part->domain;
	size_t settled = visit->count;

	count_ended(visit);
	attempts_drop(&part->settling, &settled);
	d->alone = false;
	if (!visit->held)
		return;
	row_learn(d, row, part->room);
	d->burying = part->more_dead;
	if (part->reads || part->room == 0)
		d->dry = !part->more && d->hints == d->all->hints;
	rows_take(d, step, row);
}

static void part_done(const struct fediverse_step *step, size_t i)
{
	struct fediverse_domain *d = step->parts[i].domain;

	d->stepping = false;
	d->stepped = true;
	if (step->failed)
		part_undo(step, i);
	else
		part_take(step, i);
	if (!step->failed && !step->visits[i].held)
		fediverse_domain_lose(d);
	else
		fediverse_domain_go(d);
}

static void step_done(void *item)
{
	struct fediverse_step *step = item;
	struct fediverse *all = step->all;
	struct arena *arena = step->arena;

	all->steps--;
	for (size_t i = 0; i < step->count; i++)
		part_done(step, i);
	arena_free(&arena);
	fediverse_step_soon(all);
}

void fediverse_step_spare(struct fediverse_domain *domain,
    const struct outbound_claimed *claimed, uint64_t hints)
{
	int room = room_of(&claimed->domain);

	if (!claimed->only || room == 0)
		return;
	row_learn(domain, &claimed->domain, room);
	row_add(domain, &claimed->domain, claimed->only);
	domain->hints = hints;
	domain->dry = hints == domain->all->hints;
	domain->stepped = true;
}

/* ---- beginning one ---- */

static size_t chosen(
    struct fediverse *all, struct fediverse_domain *domains[STEP_DOMAINS])
{
	struct fediverse_domain *d;
	size_t count = 0;

	DL_FOREACH(all->domains, d)
	{
		if (!fediverse_domain_wants_step(d) || (d->alone && count > 0))
			continue;
		domains[count++] = d;
		if (d->alone || count == STEP_DOMAINS)
			break;
	}
	return count;
}

/* Copied: attempts may end meanwhile. */
static void names_add(struct fediverse_step *step, const struct attempt *list)
{
	const struct attempt *a;

	DL_FOREACH(list, a)
	step->under_way[step->under_way_count++] =
	    arena_text(step->arena, a->item.id);
}

static void part_new(
    struct fediverse_step *step, size_t i, struct fediverse_domain *d)
{
	struct outbound_result *results =
	    arena_array(step->arena, d->ended_count, sizeof(*results));
	const struct attempt *a;
	size_t count = 0;

	DL_FOREACH(d->ended, a)
	results[count++] = delivery_result(&a->hop);
	step->parts[i] = (struct part){ .domain = d,
		.reads = fediverse_domain_wants_rows(d) };
	step->visits[i] = (struct outbound_visit){
		.lease = d->lease, .results = results, .count = count
	};
	if (!step->parts[i].reads)
		return;
	names_add(step, d->ready);
	names_add(step, d->away);
}

static struct fediverse_step *step_new(
    struct fediverse *all, struct fediverse_domain **domains, size_t count)
{
	struct arena *arena = arena_new();
	struct fediverse_step *step = ARENA_NEW(arena, struct fediverse_step);
	size_t under_way = 0;

	for (size_t i = 0; i < count; i++)
		under_way += domains[i]->ready_count + domains[i]->away_count;
	step->all = all;
	step->arena = arena;
	step->count = count;
	step->parts = arena_array(arena, count, sizeof(*step->parts));
	step->visits = arena_array(arena, count, sizeof(*step->visits));
	step->under_way = arena_array(arena, under_way, sizeof(char *));
	for (size_t i = 0; i < count; i++)
		part_new(step, i, domains[i]);
	return step;
}

/* From now on the worker has what ended. Who had a step is the last to be
 * looked at for the next one. */
static void part_begun(struct part *part)
{
	struct fediverse_domain *d = part->domain;
	struct fediverse *all = d->all;

	part->settling = d->ended;
	d->ended = NULL;
	d->ended_count = 0;
	d->news = false;
	d->hints = all->hints;
	d->stepping = true;
	DL_DELETE(all->domains, d);
	DL_APPEND(all->domains, d);
}

static bool step_begin(struct fediverse *all)
{
	struct fediverse_domain *domains[STEP_DOMAINS];
	size_t count = chosen(all, domains);
	struct fediverse_step *step;
	struct arena *arena;

	if (count == 0)
		return false;
	step = step_new(all, domains, count);
	arena = step->arena;
	if (!work_submit(all->def.pool, step_run, step_done, step)) {
		for (size_t i = 0; i < count; i++)
			domains[i]->not_before = clock_steady_ms() + AGAIN_MS;
		arena_free(&arena);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		part_begun(&step->parts[i]);
	all->steps++;
	return true;
}

void fediverse_steps_begin(void *arg)
{
	struct fediverse *all = arg;

	while (all->steps < STEPS_MAX && step_begin(all))
		;
}

void fediverse_step_soon(struct fediverse *all)
{
	if (all->steps < STEPS_MAX)
		loop_timer_arm(all->step, 0);
}

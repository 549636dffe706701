#include "outboxd/renewal.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "outboxd/outboxd.h"

struct renewal {
	struct arena *arena; /* its own */
	enum lease_of of;
	int64_t started; /* steady ms */
	const char **keys;
	const char **tokens;
	size_t count;
	void (*told)(void *owner, const struct renewal *renewal);
	void *owner;
	/* the worker's */
	struct rows kept;
	bool failed;
	struct err err;
};

struct renewal *renewal_new(enum lease_of of, int64_t most)
{
	struct arena *arena = arena_new();
	struct renewal *renewal = ARENA_NEW(arena, struct renewal);

	renewal->arena = arena;
	renewal->of = of;
	renewal->started = clock_steady_ms();
	renewal->keys = arena_array(arena, (size_t)most, sizeof(char *));
	renewal->tokens = arena_array(arena, (size_t)most, sizeof(char *));
	return renewal;
}

void renewal_add(struct renewal *renewal, const char *key, const char *token)
{
	renewal->keys[renewal->count] = arena_text(renewal->arena, key);
	renewal->tokens[renewal->count++] = arena_text(renewal->arena, token);
}

void renewal_add_id(struct renewal *renewal, int64_t key, const char *token)
{
	renewal_add(
	    renewal, arena_printf(renewal->arena, "%" PRId64, key), token);
}

static void renew_run(void *item, void *state)
{
	struct renewal *renewal = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, renewal->arena);

	tx_lazy(tx);
	tx_closing(tx);
	renewal->failed =
	    !lease_renew(tx, renewal->of, renewal->keys, renewal->tokens,
		renewal->count, &renewal->kept, &renewal->err) ||
	    !tx_commit(tx, &renewal->err);
}

static void renew_done(void *item)
{
	struct renewal *renewal = item;
	struct arena *arena = renewal->arena;

	if (renewal->failed)
		log_warn(
		    "lease.unrenewed", F("err", v_text(renewal->err.text)));
	renewal->told(renewal->owner, renewal);
	arena_free(&arena);
}

bool renewal_begin(struct renewal *renewal, struct work_pool *pool,
    void (*told)(void *owner, const struct renewal *renewal), void *owner)
{
	struct arena *arena = renewal->arena;

	renewal->told = told;
	renewal->owner = owner;
	if (work_submit(pool, renew_run, renew_done, renewal))
		return true;
	arena_free(&arena);
	return false;
}

static bool was_asked(const struct renewal *renewal, const char *token)
{
	for (size_t i = 0; i < renewal->count; i++)
		if (strcmp(renewal->tokens[i], token) == 0)
			return true;
	return false;
}

enum renewal_word renewal_of(const struct renewal *renewal, const char *token)
{
	const struct lease_kept *kept = renewal->kept.items;

	if (renewal->failed || !was_asked(renewal, token))
		return RENEWAL_SILENT;
	for (size_t i = 0; i < renewal->kept.count; i++)
		if (strcmp(kept[i].token, token) == 0)
			return kept[i].may_go_on ? RENEWAL_KEPT : RENEWAL_LEAVE;
	return RENEWAL_LOST;
}

int64_t renewal_until(const struct renewal *renewal)
{
	return renewal->started + LEASE_MS;
}

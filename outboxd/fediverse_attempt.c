#include <utlist.h>

#include "common/base/clock.h"
#include "outboxd/fediverse_figures.h"
#include "outboxd/fediverse_parts.h"

enum { AGAIN_MS = 1000, OLD_MS = 2 * 86400 * 1000 };

/* ---- an attempt ---- */

static const char *copied(struct arena *arena, const char *text)
{
	return text ? arena_text(arena, text) : NULL;
}

static struct outbound_item item_copy(
    struct arena *arena, const struct outbound_item *item)
{
	struct outbound_item copy = *item;

	copy.id = copied(arena, item->id);
	copy.activity_id = copied(arena, item->activity_id);
	copy.payload_json = copied(arena, item->payload_json);
	copy.target_inbox = copied(arena, item->target_inbox);
	copy.target_domain = copied(arena, item->target_domain);
	copy.status = copied(arena, item->status);
	copy.last_error = copied(arena, item->last_error);
	copy.actor_user_id = copied(arena, item->actor_user_id);
	copy.transport = copied(arena, item->transport);
	copy.actor_name = copied(arena, item->actor_name);
	return copy;
}

struct attempt *attempt_new(struct fediverse_domain *domain,
    const struct outbound_domain *row, const struct outbound_item *item)
{
	struct arena *arena = arena_new();
	struct attempt *a = ARENA_NEW(arena, struct attempt);

	a->arena = arena;
	a->domain = domain;
	a->item = item_copy(arena, item);
	a->way = outbound_delivery_find(
	    item->transport ? item->transport : row->transport);
	delivery_begin(&a->hop, arena, domain->all->def.home, &a->item);
	delivery_style(&a->hop, row);
	return a;
}

void attempt_free(struct attempt **attempt)
{
	struct arena *arena = (*attempt)->arena;

	pkey_free(&(*attempt)->key);
	*attempt = NULL;
	arena_free(&arena);
}

void attempts_drop(struct attempt **list, size_t *count)
{
	struct attempt *a;
	struct attempt *next;

	DL_FOREACH_SAFE(*list, a, next)
	attempt_free(&a);
	*list = NULL;
	*count = 0;
}

/* ---- what became of it, told once ---- */

void attempt_log(const struct attempt *attempt)
{
	const struct outcome *outcome = &attempt->hop.outcome;
	const char *class = outcome_class(outcome);
	bool delivered = outcome->fate == FATE_DELIVERED;
	int64_t took_ms = clock_steady_ms() - attempt->began_ms;

	metric_add(
	    &figure_activities, metric_place(&figure_activities, class), 1);
	metric_observe_us(&figure_activity_duration, 0, took_ms * 1000);
	log_write(delivered ? LOG_INFO : LOG_WARN,
	    delivered ? "activity.sent" : "activity.not_taken",
	    LOG_FIELDS(F("peer", v_text(attempt->item.target_domain)),
		F("entry", v_text(attempt->item.id)),
		F("attempt", v_int(attempt->item.attempts + 1)),
		F("code", v_int(outcome->code)), F("class", v_text(class)),
		F("style",
		    v_text(attempt->hop.style_worked ? attempt->hop.style_worked
						     : "none")),
		F("ms", v_int(took_ms)),
		F("reason",
		    v_text(outcome->text ? outcome->text : "delivered"))));
}

/* ---- on its way ---- */

/* A missing key is the row's fate; a database that is away is not. */
static bool look_up(struct attempt *attempt, struct conn *conn, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, attempt->arena);
	bool wants_key = attempt->way->needs_key && !attempt->key;

	if (!wants_key && attempt->hop.url_count == 1)
		return true;
	return (!wants_key ||
		   delivery_key(tx, attempt->hop.home, &attempt->item,
		       &attempt->key, err)) &&
	    delivery_hop_look(&attempt->hop, tx, err) && tx_commit(tx, err);
}

static void prepare_run(void *item, void *state)
{
	struct attempt *attempt = item;
	struct outboxd_worker *worker = state;

	attempt->failed = false;
	if (!attempt->way) {
		attempt->sends =
		    delivery_fail(&attempt->hop, "no such transport");
		return;
	}
	if (!look_up(attempt, worker->conn, &attempt->err)) {
		attempt->failed = true;
		return;
	}
	attempt->hop.key = attempt->key;
	attempt->sends = attempt->way->prepare(&attempt->hop);
}

static void prepare_done(void *item);

/*
 * Silence of who was well says something of our own network, that of the dead
 * does not. What is older than OLD_MS counts in any case: it has to end.
 */
static void note_silence(
    struct attempt *attempt, const struct client_result *result)
{
	struct silence *silence = &attempt->domain->all->silence;

	if (result->head_status)
		silence_heard(silence);
	else if (attempt->domain->well && attempt->hop.url_count == 1 &&
	    result->outcome != CLIENT_REFUSED_ADDRESS)
		silence_of(silence, attempt->item.target_domain);
}

static void doubt(struct attempt *attempt)
{
	const struct silence *silence = &attempt->domain->all->silence;
	struct outcome *outcome = &attempt->hop.outcome;

	if (silence_is_ours(silence) && outcome->made && !outcome->code &&
	    clock_wall_ms() - attempt->item.created_at < OLD_MS)
		outcome_take_back(
		    outcome, attempt->arena, silence_wait_ms(silence));
}

static void on_answer(void *arg, const struct client_result *result)
{
	struct attempt *attempt = arg;
	struct fediverse *all = attempt->domain->all;

	attempt->call = NULL;
	if (result->outcome == CLIENT_ABORTED) {
		fediverse_domain_back(attempt, true);
		return;
	}
	note_silence(attempt, result);
	if (!attempt->way->answered(&attempt->hop, result)) {
		doubt(attempt);
		attempt_log(attempt);
		fediverse_domain_back(attempt, false);
		return;
	}
	if (!work_submit(all->def.pool, prepare_run, prepare_done, attempt))
		fediverse_domain_back(attempt, true);
}

static void prepare_done(void *item)
{
	struct attempt *attempt = item;
	struct fediverse *all = attempt->domain->all;

	if (attempt->failed) {
		log_warn("activity.unprepared",
		    F("entry", v_text(attempt->item.id)),
		    F("err", v_text(attempt->err.text)));
		attempt->domain->not_before = clock_steady_ms() + AGAIN_MS;
	}
	if (attempt->key)
		fediverse_keys_put(all->keys, attempt->item.actor_user_id,
		    attempt->item.key_made_at, attempt->key);
	if (attempt->failed || attempt->domain->lost || !all->client) {
		fediverse_domain_back(attempt, true);
		return;
	}
	if (!attempt->sends) {
		attempt_log(attempt);
		fediverse_domain_back(attempt, false);
		return;
	}
	attempt->call =
	    client_send(all->client, &attempt->hop.request, on_answer, attempt);
}

bool attempt_begin(struct attempt *attempt)
{
	struct fediverse *all = attempt->domain->all;

	if (attempt->item.actor_name)
		attempt->key = fediverse_keys_get(all->keys,
		    attempt->item.actor_user_id, attempt->item.key_made_at);
	attempt->began_ms = clock_steady_ms();
	if (!work_submit(all->def.pool, prepare_run, prepare_done, attempt)) {
		pkey_free(&attempt->key);
		return false;
	}
	if (attempt->item.attempts == 0)
		metric_observe_us(&figure_activity_wait, 0,
		    (clock_wall_ms() - attempt->item.created_at) * 1000);
	return true;
}

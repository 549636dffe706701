#include "common/base/clock.h"
#include "common/fediverse/outbound.h"
#include "common/fediverse/outbound_settle.sql.h"
#include "common/net/addr.h"
#include "common/queue/backoff.h"

/* A temporary refusal ends at its bound, and then says so. */
static enum outbound_status status_after(
    const struct outbound_item *item, const struct outcome *outcome)
{
	int64_t attempts = item->attempts + outcome->made;

	if (outcome->fate == FATE_DELIVERED)
		return OUTBOUND_DELIVERED;
	if (outcome->fate == FATE_FAILED)
		return OUTBOUND_FAILED;
	if (outcome->unauthorized &&
	    (item->departed ||
		item->unauthorized + 1 >= OUTCOME_UNAUTHORIZED_MAX))
		return OUTBOUND_FAILED;
	if (outcome->unresolved &&
	    item->unresolved + 1 >= OUTCOME_UNRESOLVED_MAX)
		return OUTBOUND_DEAD;
	return attempts >= item->max_attempts ? OUTBOUND_DEAD
					      : OUTBOUND_PENDING;
}

static int64_t retry_at(const struct outbound_item *item,
    const struct outcome *outcome, int64_t now_ms)
{
	int64_t wait_ms =
	    backoff_inbox_ms(item->attempts + outcome->made, arc4random());

	if (outcome->uncounted || outcome->retry_after_ms > wait_ms)
		wait_ms = outcome->retry_after_ms;
	if (wait_ms > BREAKER_HOLD_MAX_MS)
		wait_ms = BREAKER_HOLD_MAX_MS;
	return now_ms + wait_ms;
}

/*
 * Who connects cannot tell a name that does not exist from name servers that
 * do not answer. Before a row dies of it they are asked once more: a fault of
 * our own resolver must not end what is owed.
 */
static bool is_absent(struct arena *arena, const struct outbound_result *result)
{
	const char *domain = result->item->target_domain;

	if (result->item->unresolved + 1 < OUTCOME_UNRESOLVED_MAX)
		return true;
	return addr_name_is_absent(
	    arena_textn(arena, domain, strcspn(domain, ":")));
}

static void domain_learn(struct outbound_domain *domain,
    const struct outcome *outcome, int64_t now_ms)
{
	struct breaker *breaker = &domain->breaker;

	if (outcome->sign == SIGN_FAILURE)
		breaker_failed(breaker, now_ms, arc4random());
	if (outcome->sign == SIGN_ALIVE)
		breaker_answered(breaker);
	if (outcome->retry_after_ms > 0)
		breaker_hold(breaker, now_ms, outcome->retry_after_ms);
	if (outcome->domain_gone)
		breaker_gone(breaker, now_ms);
}

/* Rows as they will be, column by column. */
struct written {
	struct arena *arena;
	int64_t now_ms;
	size_t count;
	const char **ids;
	const char **states;
	bool *made;
	const char **errors;
	int64_t *times;
	bool *unauthorized;
	bool *unresolved;
};

static void written_init(struct written *rows, struct arena *arena, size_t most)
{
	*rows = (struct written){
		.arena = arena,
		.now_ms = clock_wall_ms(),
		.ids = arena_array(arena, most, sizeof(char *)),
		.states = arena_array(arena, most, sizeof(char *)),
		.made = arena_array(arena, most, sizeof(bool)),
		.errors = arena_array(arena, most, sizeof(char *)),
		.times = arena_array(arena, most, sizeof(int64_t)),
		.unauthorized = arena_array(arena, most, sizeof(bool)),
		.unresolved = arena_array(arena, most, sizeof(bool)),
	};
}

static void written_add(
    struct written *rows, const struct outbound_result *result)
{
	const struct outbound_item *item = result->item;
	struct outcome outcome = result->outcome;
	enum outbound_status status;
	size_t i = rows->count++;

	outcome.unresolved =
	    outcome.unresolved && is_absent(rows->arena, result);
	status = status_after(item, &outcome);
	rows->ids[i] = item->id;
	rows->states[i] = outbound_status_text(status);
	rows->made[i] = outcome.made;
	rows->errors[i] = outcome.text;
	rows->times[i] = status == OUTBOUND_PENDING
	    ? retry_at(item, &outcome, rows->now_ms)
	    : 0;
	rows->unauthorized[i] = outcome.unauthorized;
	rows->unresolved[i] = outcome.unresolved;
}

static bool rows_write(struct tx *tx, const struct outbound_visit *visits,
    size_t count, struct err *err)
{
	struct written rows;
	size_t most = 0;

	for (size_t i = 0; i < count; i++)
		most += visits[i].count;
	written_init(&rows, tx_arena(tx), most);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; visits[i].held && j < visits[i].count; j++)
			written_add(&rows, &visits[i].results[j]);
	return rows.count == 0 ||
	    sql_none(tx, &SQL_outbound_rows_write, err,
		v_texts(rows.ids, rows.count), v_texts(rows.states, rows.count),
		v_bools(rows.made, rows.count),
		v_texts(rows.errors, rows.count),
		v_times(rows.times, rows.count),
		v_bools(rows.unauthorized, rows.count),
		v_bools(rows.unresolved, rows.count));
}

static bool inboxes_write(struct tx *tx, const struct outbound_domain *domain,
    const struct outbound_result *results, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char **inboxes = arena_array(arena, count, sizeof(*inboxes));
	int64_t *codes = arena_array(arena, count, sizeof(*codes));
	size_t gone = 0;

	for (size_t i = 0; i < count; i++) {
		if (!results[i].outcome.inbox_gone)
			continue;
		inboxes[gone] = results[i].item->target_inbox;
		codes[gone++] = results[i].outcome.code;
	}
	return gone == 0 ||
	    sql_none(tx, &SQL_outbound_inboxes_gone, err,
		v_text(domain->domain), v_texts(inboxes, gone),
		v_ints(codes, gone));
}

/* What was led to another server. */
static bool moved_write(struct tx *tx, const struct outbound_result *results,
    size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (results[i].moved_to &&
		    !sql_none(tx, &SQL_outbound_moved, err,
			v_text(results[i].item->target_inbox),
			v_text(results[i].moved_to)))
			return false;
	return true;
}

static bool domain_write(struct tx *tx, const struct outbound_domain *domain,
    const struct outbound_result *results, size_t count, struct err *err)
{
	const struct breaker *b = &domain->breaker;
	const struct outcome *last = count ? &results[count - 1].outcome : NULL;
	const char *style = NULL;
	bool style_failed = false;
	bool answered = false;

	for (size_t i = 0; i < count; i++) {
		if (results[i].style)
			style = results[i].style;
		style_failed |= results[i].style_failed;
		answered |= results[i].outcome.fate == FATE_DELIVERED;
	}
	return sql_none(tx, &SQL_outbound_domain_write, err,
	    v_text(domain->domain), v_text(breaker_state_text(b->state)),
	    v_int(b->failures), v_time(b->failures_since_ms),
	    v_time(b->last_failure_ms), v_int(b->failure_days),
	    v_int(b->last_day), v_int(b->pauses), v_time(b->not_before_ms),
	    v_bool(b->gone), v_time(b->died_ms), v_text(style),
	    v_bool(style_failed), v_bool(answered),
	    v_int(last ? last->code : 0), v_text(last ? last->text : NULL));
}

/* Who takes what comes is praised every few seconds, not each time. */
static bool is_news(
    const struct outbound_domain *domain, const struct outbound_result *result)
{
	return result->outcome.fate != FATE_DELIVERED ||
	    (result->style &&
		(!domain->style || strcmp(result->style, domain->style) != 0));
}

static bool domain_settle(
    struct tx *tx, struct outbound_visit *visit, struct err *err)
{
	struct outbound_domain *domain = &visit->domain;
	enum breaker_state before = domain->breaker.state;
	int64_t now_ms = clock_wall_ms();
	bool news;

	breaker_look(&domain->breaker, now_ms);
	news = domain->breaker.state != before ||
	    (visit->count > 0 && !domain->praised);
	for (size_t i = 0; i < visit->count; i++) {
		domain_learn(domain, &visit->results[i].outcome, now_ms);
		news = news || is_news(domain, &visit->results[i]);
	}
	return !news ||
	    domain_write(tx, domain, visit->results, visit->count, err);
}

/* What follows for others than the rows and their domain. */
static bool rest_write(
    struct tx *tx, const struct outbound_visit *visit, struct err *err)
{
	return inboxes_write(
		   tx, &visit->domain, visit->results, visit->count, err) &&
	    moved_write(tx, visit->results, visit->count, err);
}

bool outbound_settle(
    struct tx *tx, struct outbound_visit *visits, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (visits[i].held && !domain_settle(tx, &visits[i], err))
			return false;
	if (!rows_write(tx, visits, count, err))
		return false;
	for (size_t i = 0; i < count; i++)
		if (visits[i].held && !rest_write(tx, &visits[i], err))
			return false;
	return true;
}

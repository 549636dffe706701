#include "common/fediverse/outbound.h"

#include "common/base/clock.h"
#include "common/fediverse/outbound.sql.h"
#include "common/net/addr.h"
#include "common/net/url.h"
#include "common/queue/backoff.h"
#include "common/queue/lease.h"

enum { BURIED_MAX = 1000 };

static const char *const statuses[] = {
	[OUTBOUND_PENDING] = "pending",
	[OUTBOUND_DELIVERED] = "delivered",
	[OUTBOUND_FAILED] = "failed",
	[OUTBOUND_DEAD] = "dead",
};

const char *outbound_status_text(enum outbound_status status)
{
	return statuses[status];
}

bool outbound_status_parse(const char *text, enum outbound_status *status)
{
	for (size_t i = 0; i < COUNT(statuses); i++) {
		if (strcmp(statuses[i], text) != 0)
			continue;
		*status = (enum outbound_status)i;
		return true;
	}
	return false;
}

/* ---- records ---- */

/* clang-format off */
static const struct shape item_shape[] = {
	SHAPE(TEXT, struct outbound_item, id, NULL),
	SHAPE(TEXT, struct outbound_item, activity_id, NULL),
	SHAPE(TEXT, struct outbound_item, payload_json, NULL),
	SHAPE(TEXT, struct outbound_item, target_inbox, NULL),
	SHAPE(TEXT, struct outbound_item, target_domain, NULL),
	SHAPE(TEXT, struct outbound_item, status, NULL),
	SHAPE(INT,  struct outbound_item, attempts, NULL),
	SHAPE(INT,  struct outbound_item, max_attempts, NULL),
	SHAPE(TEXT, struct outbound_item, last_error, NULL),
	SHAPE(TIME, struct outbound_item, next_retry_at, NULL),
	SHAPE(TIME, struct outbound_item, created_at, NULL),
	SHAPE(TIME, struct outbound_item, delivered_at, NULL),
	SHAPE(TEXT, struct outbound_item, actor_user_id, NULL),
	SHAPE(TEXT, struct outbound_item, transport, NULL),
	SHAPE(BOOL, struct outbound_item, shared, NULL),
	SHAPE(INT,  struct outbound_item, unauthorized, NULL),
	SHAPE(INT,  struct outbound_item, unresolved, NULL),
	SHAPE(TEXT, struct outbound_item, actor_name, NULL),
	SHAPE(BOOL, struct outbound_item, actor_is_instance, NULL),
	SHAPE(TIME, struct outbound_item, key_made_at, NULL),
	SHAPE(BOOL, struct outbound_item, silenced, NULL),
	SHAPE(BOOL, struct outbound_item, departed, NULL),
	SHAPE_END(struct outbound_item),
};

const struct shape outbound_line_shape[] = {
	SHAPE(TEXT, struct outbound_line, id, "id"),
	SHAPE(TEXT, struct outbound_line, activity_id, "activityId"),
	SHAPE(TEXT, struct outbound_line, target_inbox, "inbox"),
	SHAPE(TEXT, struct outbound_line, status, "status"),
	SHAPE(INT,  struct outbound_line, attempts, "attempts"),
	SHAPE(TEXT, struct outbound_line, last_error, "lastError"),
	SHAPE(TIME, struct outbound_line, next_retry_at, "nextRetryAt"),
	SHAPE(TIME, struct outbound_line, created_at, "createdAt"),
	SHAPE(TIME, struct outbound_line, delivered_at, "deliveredAt"),
	SHAPE_END(struct outbound_line),
};

static const struct shape lease_shape[] = {
	SHAPE(TEXT, struct outbound_lease, domain, NULL),
	SHAPE(TEXT, struct outbound_lease, token, NULL),
	SHAPE_END(struct outbound_lease),
};

struct domain_row {
	const char *state;
	int64_t failures;
	int64_t failures_since;
	int64_t last_failure_at;
	int64_t failure_days;
	int64_t last_day;
	int64_t pauses;
	int64_t not_before;
	bool gone;
	int64_t died_at;
	const char *style;
	const char *first_style;
	const char *transport;
	bool fediverse;
	bool blocked;
	bool well;
};

static const struct shape domain_shape[] = {
	SHAPE(TEXT, struct domain_row, state, NULL),
	SHAPE(INT,  struct domain_row, failures, NULL),
	SHAPE(TIME, struct domain_row, failures_since, NULL),
	SHAPE(TIME, struct domain_row, last_failure_at, NULL),
	SHAPE(INT,  struct domain_row, failure_days, NULL),
	SHAPE(INT,  struct domain_row, last_day, NULL),
	SHAPE(INT,  struct domain_row, pauses, NULL),
	SHAPE(TIME, struct domain_row, not_before, NULL),
	SHAPE(BOOL, struct domain_row, gone, NULL),
	SHAPE(TIME, struct domain_row, died_at, NULL),
	SHAPE(TEXT, struct domain_row, style, NULL),
	SHAPE(TEXT, struct domain_row, first_style, NULL),
	SHAPE(TEXT, struct domain_row, transport, NULL),
	SHAPE(BOOL, struct domain_row, fediverse, NULL),
	SHAPE(BOOL, struct domain_row, blocked, NULL),
	SHAPE(BOOL, struct domain_row, well, NULL),
	SHAPE_END(struct domain_row),
};
/* clang-format on */

struct row_id {
	const char *id;
};

static const struct shape id_shape[] = {
	SHAPE(TEXT, struct row_id, id, NULL),
	SHAPE_END(struct row_id),
};

struct buried {
	int64_t buried;
};

struct is_blocked {
	bool blocked;
};

static const struct shape is_blocked_shape[] = {
	SHAPE(BOOL, struct is_blocked, blocked, NULL),
	SHAPE_END(struct is_blocked),
};

static const struct shape buried_shape[] = {
	SHAPE(INT, struct buried, buried, NULL),
	SHAPE_END(struct buried),
};

/* ---- enqueue ---- */

static const char *copied(struct arena *arena, const char *text)
{
	return text ? arena_text(arena, text) : NULL;
}

struct enqueue_request enqueue_request_copy(
    struct arena *arena, const struct enqueue_request *request)
{
	return (struct enqueue_request){
		.activity_id = copied(arena, request->activity_id),
		.payload_json = copied(arena, request->payload_json),
		.target_inbox = copied(arena, request->target_inbox),
		.target_domain = copied(arena, request->target_domain),
		.actor_user_id = copied(arena, request->actor_user_id),
		.transport = copied(arena, request->transport),
		.shared_inbox = request->shared_inbox,
	};
}

/* The inbox in the one spelling that is stored. */
static bool inbox_normal(struct tx *tx, const struct home *home,
    const struct enqueue_request *request, const char **inbox, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct origin origin;
	struct origin named;
	const char *path;
	const char *rest;

	if (!request->target_inbox ||
	    !url_parse(arena, request->target_inbox, &origin, &path))
		return err_set(
		    err, ERR_INVALID, "targetInbox is no http(s) URL");
	if (strcmp(origin.text, home->origin.text) == 0)
		return err_set(err, ERR_INVALID, "targetInbox is our own");
	if (request->target_domain &&
	    (!url_parse(arena,
		 arena_printf(arena, "%s://%s", origin.plain ? "http" : "https",
		     request->target_domain),
		 &named, &rest) ||
		strcmp(named.text, origin.text) != 0))
		return err_set(
		    err, ERR_INVALID, "targetDomain is not the inbox's");
	*inbox = arena_printf(arena, "%s%s", origin.text, path);
	return true;
}

bool outbound_enqueue(struct tx *tx, const struct home *home,
    const struct enqueue_request *request, struct outbound_item *item,
    struct err *err)
{
	const char *inbox = NULL;
	struct row_id row;

	return inbox_normal(tx, home, request, &inbox, err) &&
	    sql_one(tx, &SQL_outbound_enqueue, id_shape, &row, err,
		v_text(request->activity_id), v_text(request->payload_json),
		v_text(inbox), v_text(request->actor_user_id),
		v_text(request->transport), v_bool(request->shared_inbox)) &&
	    outbound_find(tx, row.id, item, err);
}

/* All inboxes in the one spelling. */
static bool inboxes_normal(struct tx *tx, const struct home *home,
    const char *const *inboxes, size_t count, const char **normal,
    struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct enqueue_request one = { .target_inbox =
							 inboxes[i] };

		if (!inbox_normal(tx, home, &one, &normal[i], err))
			return false;
	}
	return true;
}

bool outbound_enqueue_all(struct tx *tx, const struct home *home,
    const struct enqueue_request *request, const char *const *inboxes,
    size_t count, struct rows *lines, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char **texts = arena_array(arena, count, sizeof(char *));
	const struct row_id *ids;
	struct rows rows;

	if (!inboxes_normal(tx, home, inboxes, count, texts, err) ||
	    !sql_many(tx, &SQL_outbound_enqueue_all, id_shape, &rows, err,
		v_text(request->activity_id), v_text(request->payload_json),
		v_texts(texts, count), v_text(request->actor_user_id),
		v_text(request->transport), v_bool(request->shared_inbox)))
		return false;
	ids = rows.items;
	texts = arena_array(arena, rows.count, sizeof(char *));
	for (size_t i = 0; i < rows.count; i++)
		texts[i] = ids[i].id;
	return sql_many(tx, &SQL_outbound_lines, outbound_line_shape, lines,
	    err, v_texts(texts, rows.count));
}

bool outbound_of_activity(
    struct tx *tx, const char *activity_id, struct rows *lines, struct err *err)
{
	return sql_many(tx, &SQL_outbound_of_activity, outbound_line_shape,
	    lines, err, v_text(activity_id));
}

bool outbound_find(
    struct tx *tx, const char *id, struct outbound_item *item, struct err *err)
{
	return sql_one(
	    tx, &SQL_outbound_find, item_shape, item, err, v_text(id));
}

/* ---- domains ---- */

bool outbound_claim(struct tx *tx, int64_t room, int64_t worker,
    struct rows *leases, struct err *err)
{
	return sql_many(tx, &SQL_outbound_claim, lease_shape, leases, err,
	    v_int(room), v_span(LEASE_MS), v_id(worker));
}

bool outbound_claim_oldest(
    struct tx *tx, int64_t worker, struct rows *leases, struct err *err)
{
	return sql_many(tx, &SQL_outbound_claim_oldest, lease_shape, leases,
	    err, v_span(LEASE_MS), v_id(worker));
}

static bool domain_take(const struct outbound_lease *lease,
    const struct domain_row *row, struct outbound_domain *domain,
    struct err *err)
{
	enum breaker_state state = BREAKER_CLOSED;

	if (!breaker_state_parse(row->state, &state))
		return err_set(err, ERR_BUG, "no state %s", row->state);
	*domain = (struct outbound_domain){
		.domain = lease->domain,
		.token = lease->token,
		.breaker = {
			.state = state,
			.failures = row->failures,
			.failures_since_ms = row->failures_since,
			.last_failure_ms = row->last_failure_at,
			.failure_days = row->failure_days,
			.last_day = row->last_day,
			.pauses = row->pauses,
			.not_before_ms = row->not_before,
			.gone = row->gone,
			.died_ms = row->died_at,
		},
		.style = row->style,
		.first_style = row->first_style,
		.transport = row->transport,
		.on = row->fediverse,
		.blocked = row->blocked,
		.well = row->well,
	};
	return true;
}

bool outbound_lock(struct tx *tx, const struct outbound_lease *lease,
    struct outbound_domain *domain, bool *held, struct err *err)
{
	struct domain_row row;
	bool found = false;

	if (!sql_opt(tx, &SQL_outbound_lock, domain_shape, &row, &found, err,
		v_text(lease->domain), v_text(lease->token)) ||
	    (found && !domain_take(lease, &row, domain, err)))
		return false;
	*held = found;
	return true;
}

bool outbound_release(
    struct tx *tx, const struct outbound_lease *lease, struct err *err)
{
	return sql_none(tx, &SQL_outbound_release, err, v_text(lease->domain),
	    v_text(lease->token));
}

bool outbound_probe(struct tx *tx, int64_t room, int64_t every_ms,
    struct rows *domains, struct err *err)
{
	return sql_many(tx, &SQL_outbound_probe, lease_shape, domains, err,
	    v_int(room), v_span(every_ms));
}

bool outbound_signs_rfc9421(struct tx *tx, const char *origin, struct err *err)
{
	const char *host = strstr(origin, "://");

	return sql_none(tx, &SQL_outbound_signs_rfc9421, err,
	    v_text(host ? host + 3 : origin));
}

bool outbound_revive(struct tx *tx, const char *domain, struct err *err)
{
	return sql_none(tx, &SQL_outbound_revive, err, v_text(domain));
}

bool outbound_read(struct tx *tx, const struct outbound_domain *domain,
    int64_t limit, const char *const *under_way, size_t under_way_count,
    struct rows *items, struct err *err)
{
	return sql_many(tx, &SQL_outbound_read, item_shape, items, err,
	    v_text(domain->domain), v_int(limit),
	    v_texts(under_way, under_way_count));
}

bool outbound_is_blocked(
    struct tx *tx, const char *inbox, bool *blocked, struct err *err)
{
	struct is_blocked row;

	if (!sql_one(tx, &SQL_outbound_is_blocked, is_blocked_shape, &row, err,
		v_text(inbox)))
		return false;
	*blocked = row.blocked;
	return true;
}

static const char *cause_of_death(const struct outbound_domain *domain)
{
	if (domain->blocked)
		return "the server is blocked";
	return domain->breaker.gone ? "the server is gone"
				    : "the server has not answered for days";
}

bool outbound_bury(struct tx *tx, const struct outbound_domain *domain,
    bool *more, struct err *err)
{
	struct buried row;

	if (!sql_one(tx, &SQL_outbound_bury, buried_shape, &row, err,
		v_text(domain->domain), v_int(BURIED_MAX),
		v_text(cause_of_death(domain))))
		return false;
	*more = row.buried == BURIED_MAX;
	return true;
}

/* ---- what became of rows ---- */

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

static bool rows_write(struct tx *tx, const struct outbound_result *results,
    size_t count, int64_t now_ms, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char **ids = arena_array(arena, count, sizeof(*ids));
	const char **states = arena_array(arena, count, sizeof(*states));
	const char **errors = arena_array(arena, count, sizeof(*errors));
	int64_t *times = arena_array(arena, count, sizeof(*times));
	bool *made = arena_array(arena, count, sizeof(*made));
	bool *unauthorized = arena_array(arena, count, sizeof(*unauthorized));
	bool *unresolved = arena_array(arena, count, sizeof(*unresolved));

	for (size_t i = 0; i < count; i++) {
		const struct outbound_item *item = results[i].item;
		struct outcome known = results[i].outcome;
		const struct outcome *outcome = &known;
		enum outbound_status status;

		known.unresolved =
		    known.unresolved && is_absent(arena, &results[i]);
		status = status_after(item, outcome);

		ids[i] = item->id;
		states[i] = outbound_status_text(status);
		errors[i] = outcome->text;
		times[i] = status == OUTBOUND_PENDING
		    ? retry_at(item, outcome, now_ms)
		    : 0;
		made[i] = outcome->made;
		unauthorized[i] = outcome->unauthorized;
		unresolved[i] = outcome->unresolved;
	}
	return sql_none(tx, &SQL_outbound_rows_write, err, v_texts(ids, count),
	    v_texts(states, count), v_bools(made, count),
	    v_texts(errors, count), v_times(times, count),
	    v_bools(unauthorized, count), v_bools(unresolved, count));
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

bool outbound_settle(struct tx *tx, struct outbound_domain *domain,
    const struct outbound_result *results, size_t count, struct err *err)
{
	int64_t now_ms = clock_wall_ms();
	enum breaker_state before = domain->breaker.state;

	breaker_look(&domain->breaker, now_ms);
	for (size_t i = 0; i < count; i++)
		domain_learn(domain, &results[i].outcome, now_ms);
	if (count == 0 && domain->breaker.state == before)
		return true;
	return domain_write(tx, domain, results, count, err) &&
	    (count == 0 ||
		(rows_write(tx, results, count, now_ms, err) &&
		    inboxes_write(tx, domain, results, count, err) &&
		    moved_write(tx, results, count, err)));
}

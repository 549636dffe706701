#include "common/fediverse/outbound.h"

#include "common/fediverse/outbound.sql.h"
#include "common/net/url.h"
#include "common/pg/notify.h"
#include "common/queue/lease.h"

enum { BURIED_MAX = 1000, READ_BYTES_MAX = 1 << 20 };

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
#define ITEM_SHAPE(type, in) \
	SHAPE_IN(TEXT, type, in, id), \
	SHAPE_IN(TEXT, type, in, activity_id), \
	SHAPE_IN(TEXT, type, in, payload_json), \
	SHAPE_IN(TEXT, type, in, target_inbox), \
	SHAPE_IN(TEXT, type, in, target_domain), \
	SHAPE_IN(TEXT, type, in, status), \
	SHAPE_IN(INT,  type, in, attempts), \
	SHAPE_IN(INT,  type, in, max_attempts), \
	SHAPE_IN(TEXT, type, in, last_error), \
	SHAPE_IN(TIME, type, in, next_retry_at), \
	SHAPE_IN(TIME, type, in, created_at), \
	SHAPE_IN(TIME, type, in, delivered_at), \
	SHAPE_IN(TEXT, type, in, actor_user_id), \
	SHAPE_IN(TEXT, type, in, transport), \
	SHAPE_IN(BOOL, type, in, shared), \
	SHAPE_IN(INT,  type, in, unauthorized), \
	SHAPE_IN(INT,  type, in, unresolved), \
	SHAPE_IN(TEXT, type, in, actor_name), \
	SHAPE_IN(BOOL, type, in, actor_is_instance), \
	SHAPE_IN(TIME, type, in, key_made_at), \
	SHAPE_IN(BOOL, type, in, silenced), \
	SHAPE_IN(BOOL, type, in, departed)

/* Alone in its struct: rows of it are rows of items. */
struct item_row {
	struct outbound_item item;
};

static const struct shape item_shape[] = {
	ITEM_SHAPE(struct item_row, item),
	SHAPE_END(struct item_row),
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
	const char *domain;
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
	const char *usual_transport;
	bool fediverse;
	bool blocked;
	bool well;
	bool praised;
};

#define DOMAIN_SHAPE(type, in) \
	SHAPE_IN(TEXT, type, in, domain), \
	SHAPE_IN(TEXT, type, in, state), \
	SHAPE_IN(INT,  type, in, failures), \
	SHAPE_IN(TIME, type, in, failures_since), \
	SHAPE_IN(TIME, type, in, last_failure_at), \
	SHAPE_IN(INT,  type, in, failure_days), \
	SHAPE_IN(INT,  type, in, last_day), \
	SHAPE_IN(INT,  type, in, pauses), \
	SHAPE_IN(TIME, type, in, not_before), \
	SHAPE_IN(BOOL, type, in, gone), \
	SHAPE_IN(TIME, type, in, died_at), \
	SHAPE_IN(TEXT, type, in, style), \
	SHAPE_IN(TEXT, type, in, first_style), \
	SHAPE_IN(TEXT, type, in, usual_transport), \
	SHAPE_IN(BOOL, type, in, fediverse), \
	SHAPE_IN(BOOL, type, in, blocked), \
	SHAPE_IN(BOOL, type, in, well), \
	SHAPE_IN(BOOL, type, in, praised)

/* A lease with its domain, and one of the rows that are due or none. */
struct claimed_row {
	const char *token;
	struct domain_row domain;
	struct outbound_item item;
};

static const struct shape claimed_shape[] = {
	SHAPE(TEXT, struct claimed_row, token, NULL),
	DOMAIN_SHAPE(struct claimed_row, domain),
	ITEM_SHAPE(struct claimed_row, item),
	SHAPE_END(struct claimed_row),
};

/* As with items. */
struct locked_row {
	struct domain_row domain;
};

static const struct shape domain_shape[] = {
	DOMAIN_SHAPE(struct locked_row, domain),
	SHAPE_END(struct locked_row),
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

	if (!inbox_normal(tx, home, request, &inbox, err) ||
	    !sql_one(tx, &SQL_outbound_enqueue, id_shape, &row, err,
		v_text(request->activity_id), v_text(request->payload_json),
		v_text(inbox), v_text(request->actor_user_id),
		v_text(request->transport), v_bool(request->shared_inbox)))
		return false;
	signal_activity(tx);
	return outbound_find(tx, row.id, item, err);
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
	signal_activity(tx);
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
		.transport = row->usual_transport,
		.on = row->fediverse,
		.blocked = row->blocked,
		.well = row->well,
		.praised = row->well && row->praised,
	};
	return true;
}

/* Its rows follow each other. What is more than one is read as usual. */
static bool claimed_take(const struct claimed_row *rows, size_t count,
    struct outbound_claimed *claimed, struct err *err)
{
	claimed->lease.domain = rows->domain.domain;
	claimed->lease.token = rows->token;
	claimed->only = count == 1 && rows->item.id ? &rows->item : NULL;
	return domain_take(
	    &claimed->lease, &rows->domain, &claimed->domain, err);
}

static size_t same_domain(const struct claimed_row *rows, size_t count)
{
	size_t same = 1;

	while (same < count &&
	    strcmp(rows[same].domain.domain, rows->domain.domain) == 0)
		same++;
	return same;
}

bool outbound_claim(struct tx *tx, int64_t room, int64_t worker,
    struct rows *claimed, struct err *err)
{
	struct outbound_claimed *list;
	const struct claimed_row *row;
	struct rows rows;
	size_t count = 0;

	if (!sql_many(tx, &SQL_outbound_claim, claimed_shape, &rows, err,
		v_int(room), v_span(LEASE_MS), v_id(worker)))
		return false;
	row = rows.items;
	list = arena_array(tx_arena(tx), rows.count, sizeof(*list));
	for (size_t i = 0, same; i < rows.count; i += same) {
		same = same_domain(&row[i], rows.count - i);
		if (!claimed_take(&row[i], same, &list[count++], err))
			return false;
	}
	*claimed = (struct rows){ list, count };
	return true;
}

static struct outbound_visit *visit_of(
    struct outbound_visit *visits, size_t count, const char *domain)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(visits[i].lease.domain, domain) == 0)
			return &visits[i];
	return NULL;
}

static bool visits_take(struct outbound_visit *visits, size_t count,
    const struct rows *rows, struct err *err)
{
	const struct domain_row *row = rows->items;

	for (size_t i = 0; i < count; i++)
		visits[i].held = false;
	for (size_t i = 0; i < rows->count; i++) {
		struct outbound_visit *visit =
		    visit_of(visits, count, row[i].domain);

		assert(visit);
		if (!domain_take(&visit->lease, &row[i], &visit->domain, err))
			return false;
		visit->held = true;
	}
	return true;
}

bool outbound_lock(
    struct tx *tx, struct outbound_visit *visits, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char **domains = arena_array(arena, count, sizeof(*domains));
	const char **tokens = arena_array(arena, count, sizeof(*tokens));
	struct rows rows;

	for (size_t i = 0; i < count; i++) {
		domains[i] = visits[i].lease.domain;
		tokens[i] = visits[i].lease.token;
	}
	return sql_many(tx, &SQL_outbound_lock, domain_shape, &rows, err,
		   v_texts(domains, count), v_texts(tokens, count)) &&
	    visits_take(visits, count, &rows, err);
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

/* Payloads are kept while their rows are under way: hence the bound. */
static bool is_cut(const struct rows *items, const char *domain, int64_t limit)
{
	const struct outbound_item *item = items->items;
	int64_t count = 0;
	size_t bytes = 0;

	for (size_t i = 0; i < items->count; i++) {
		if (strcmp(item[i].target_domain, domain) != 0)
			continue;
		count++;
		bytes += strlen(item[i].payload_json);
	}
	return count == limit || bytes >= READ_BYTES_MAX;
}

bool outbound_read(struct tx *tx, const struct outbound_reading *reading,
    struct rows *items, struct err *err)
{
	if (!sql_many(tx, &SQL_outbound_read, item_shape, items, err,
		v_texts(reading->domains, reading->count),
		v_ints(reading->limits, reading->count),
		v_texts(reading->under_way, reading->under_way_count),
		v_int(READ_BYTES_MAX)))
		return false;
	for (size_t i = 0; i < reading->count; i++)
		reading->more[i] =
		    is_cut(items, reading->domains[i], reading->limits[i]);
	return true;
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

#include "tests/chaos/check.h"

#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

/* An entry that was once in the outbox. */
struct entry {
	int64_t id;
	const char *context_id;
	const char *event_type;
	const char *entity_id;
	const char *content;
	bool presented;
	bool accepted;
};

/* clang-format off */
static const struct shape entry_shape[] = {
	SHAPE(ID,   struct entry, id, NULL),
	SHAPE(TEXT, struct entry, context_id, NULL),
	SHAPE(TEXT, struct entry, event_type, NULL),
	SHAPE(TEXT, struct entry, entity_id, NULL),
	SHAPE(TEXT, struct entry, content, NULL),
	SHAPE_END(struct entry),
};
/* clang-format on */

static const struct stmt entries_stmt = { "entries",
	"SELECT id, context_id, event_type, entity_id,"
	"       coalesce(content, '') AS content"
	"  FROM chaos.entries ORDER BY entity_id COLLATE \"C\", id",
	SQL_MANY, 0 };

/*
 * The outbox's order is that of the conversation's own events: what the
 * n-th event of our people says is what the n-th entry says.
 */
static const char order_query[] =
    "SELECT count(*) AS n FROM ("
    " SELECT conversation_id::text AS c, entity_id::text AS e,"
    "  CASE kind WHEN 'message_created' THEN 'create'"
    "   WHEN 'message_updated' THEN 'update' ELSE 'delete' END AS k,"
    "  row_number() OVER (PARTITION BY conversation_id ORDER BY seq) AS i"
    "  FROM conversation_events v JOIN users u ON u.id = v.actor_id"
    "  WHERE u.home_instance IS NULL AND kind LIKE 'message\\_%d') a"
    " FULL JOIN ("
    " SELECT context_id AS c, entity_id AS e, event_type AS k,"
    "  row_number() OVER (PARTITION BY context_id ORDER BY id) AS i"
    "  FROM chaos.entries) b"
    " USING (c, i) WHERE (a.e, a.k) IS DISTINCT FROM (b.e, b.k)";

enum { CONTEXTS_MAX = 64 };

struct context {
	const char *id;
	int64_t newest; /* presented so far */
	bool refused;
};

struct order {
	const struct side *side;
	struct entry *entries; /* by entity, then by id */
	size_t count;
	struct context contexts[CONTEXTS_MAX];
	int context_count;
	struct verdict *verdict;
};

/* What happened to one thing, in order. */
struct story {
	struct entry *first;
	struct entry *end;
};

static struct context *context_of(struct order *order, const char *id)
{
	struct context *context;

	for (int i = 0; i < order->context_count; i++)
		if (strcmp(order->contexts[i].id, id) == 0)
			return &order->contexts[i];
	assert(order->context_count < CONTEXTS_MAX);
	context = &order->contexts[order->context_count++];
	context->id = id;
	return context;
}

static struct story story_of(const struct order *order, const char *entity)
{
	size_t low = 0;
	size_t high = order->count;
	struct story story;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(order->entries[middle].entity_id, entity) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	story.first = story.end = order->entries + low;
	while (story.end < order->entries + order->count &&
	    strcmp(story.end->entity_id, entity) == 0)
		story.end++;
	return story;
}

/* The last entry that an event on the line stands for; NULL: none. */
static struct entry *last_of(
    const struct story *story, const struct proxy_line *line)
{
	bool is_delete = strcmp(line->event_type, "delete") == 0;

	for (struct entry *e = story->end; e-- > story->first;) {
		if (is_delete != (strcmp(e->event_type, "delete") == 0))
			continue;
		if (is_delete ||
		    (line->content && strcmp(e->content, line->content) == 0))
			return e;
	}
	return NULL;
}

static void complain(
    struct order *order, const char *what, const struct proxy_line *line)
{
	order->verdict->unordered++;
	check_say(what, line->entity, line->event_type);
}

/*
 * A repetition may say more than the first time: what was folded into it has
 * no place of its own. A first presentation has the place of its first entry,
 * and no other that is behind it in its conversation came before.
 */
static void see_presented(struct order *order, const struct proxy_line *line)
{
	struct story story = story_of(order, line->entity);
	struct entry *last = last_of(&story, line);
	struct entry *fresh = NULL;
	bool creates = strcmp(line->event_type, "create") == 0;
	struct context *context;
	bool repeats = false;

	if (!last) {
		complain(order, "nobody said", line);
		return;
	}
	for (struct entry *e = story.first; e <= last; e++) {
		bool create = strcmp(e->event_type, "create") == 0;

		if (e->presented && (!create || creates))
			repeats = true;
		else if (!e->presented && !fresh)
			fresh = e;
		e->presented = true;
	}
	context = context_of(order, last->context_id);
	if (!fresh || repeats || context->refused)
		return;
	if (fresh->id < context->newest)
		complain(order, "presented too late", line);
	else
		context->newest = fresh->id;
}

static void see_accepted(struct order *order, const struct proxy_line *line)
{
	struct story story = story_of(order, line->entity);
	struct entry *last = last_of(&story, line);
	bool creates = strcmp(line->event_type, "create") == 0;

	if (!last || last->accepted)
		return;
	for (struct entry *e = last; e < story.end; e++)
		if (e->accepted) {
			complain(order, "accepted too late", line);
			return;
		}
	for (struct entry *e = story.first; e <= last; e++)
		if (creates || strcmp(e->event_type, "create") != 0)
			e->accepted = true;
}

/* What waits behind a refusal loses its place, and no more is asked of it. */
static void see_refused(struct order *order, const struct proxy_line *line)
{
	struct story story = story_of(order, line->entity);

	if (story.first == story.end)
		return;
	if (strcmp(line->reason, "duplicate") == 0) {
		story.first->accepted = true;
		return;
	}
	if (strcmp(line->reason, "channel_not_found") == 0)
		context_of(order, story.first->context_id)->refused = true;
	for (struct entry *e = story.first; e < story.end; e++)
		e->presented = true;
}

static void see(struct order *order, const struct proxy_line *line)
{
	switch (line->kind) {
	case LINE_PRESENTED:
		see_presented(order, line);
		return;
	case LINE_ACCEPTED:
		see_accepted(order, line);
		return;
	case LINE_REFUSED:
		see_refused(order, line);
		return;
	}
}

static bool entries_read(struct order *order, struct arena *arena,
    struct rows *rows, struct err *err)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(order->side->database);
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

	if (!sql_many(tx, &entries_stmt, entry_shape, rows, err))
		return false;
	order->entries = rows->items;
	order->count = rows->count;
	return true;
}

/* The proxy that a sender's relays pass stands before the other side. */
bool check_order(const struct site *site, int sender, struct verdict *verdict,
    struct err *err)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	struct order order = { .side = &site->sides[sender],
		.verdict = verdict };
	struct rows rows = { 0 };
	struct rows lines = proxy_lines(site->sides[1 - sender].proxy, arena);
	const struct proxy_line *line = lines.items;
	int64_t unlike = side_number(order.side, order_query);

	if (unlike != 0) {
		verdict->unordered++;
		check_say("the outbox is not in the conversations' order",
		    order.side->name, arena_printf(arena, "%" PRId64, unlike));
	}
	if (!entries_read(&order, arena, &rows, err))
		return false;
	verdict->entries += (int64_t)rows.count;
	for (size_t i = 0; i < lines.count; i++)
		see(&order, &line[i]);
	return true;
}

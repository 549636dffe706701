#include "tests/chaos/check.h"

#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

struct held {
	const char *key; /* origin and id of the message */
	const char *content;
	const char *rest; /* edited, who is in the conversation */
};

/* clang-format off */
static const struct shape held_shape[] = {
	SHAPE(TEXT, struct held, key, NULL),
	SHAPE(TEXT, struct held, content, NULL),
	SHAPE(TEXT, struct held, rest, NULL),
	SHAPE_END(struct held),
};
/* clang-format on */

/* $1 the node's origin, $2 its host */
static const struct stmt held_stmt = { "held",
	"SELECT coalesce(m.source_instance, $1::text) || ' '"
	"       || coalesce(m.source_message_id, m.id::text) AS key,"
	"       coalesce(m.content, '') AS content,"
	"       coalesce(m.edited_at::text, '') || ' ' || c.members AS rest"
	"  FROM dm_messages m"
	"  JOIN (SELECT d.dm_channel_id, string_agg("
	"               coalesce(u.home_instance, $2::text) || '/'"
	"               || coalesce(u.home_user_id, u.id::text), ' '"
	"               ORDER BY coalesce(u.home_instance, $2::text),"
	"               coalesce(u.home_user_id, u.id::text)) AS members"
	"          FROM dm_members d JOIN users u ON u.id = d.user_id"
	"         GROUP BY d.dm_channel_id) c"
	"    ON c.dm_channel_id = m.dm_channel_id"
	" ORDER BY (coalesce(m.source_instance, $1::text) || ' '"
	"       || coalesce(m.source_message_id, m.id::text)) COLLATE \"C\"",
	SQL_MANY, 2 };

void check_say(const char *what, const char *about, const char *detail)
{
	fprintf(stderr, "chaos: %s: %s (%s)\n", what, about,
	    detail ? detail : "nothing");
}

bool verdict_is_good(const struct verdict *verdict)
{
	return !verdict->missing && !verdict->doubled && !verdict->differing &&
	    !verdict->unordered && !verdict->dead;
}

bool check_drained(const struct site *site)
{
	for (int s = 0; s < site->count; s++)
		if (side_number(&site->sides[s],
			"SELECT count(*) AS n FROM federation_outbox") != 0)
			return false;
	return true;
}

static bool held_read(const struct side *side, struct arena *arena,
    struct rows *rows, struct err *err)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(side->database);
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

	return sql_many(tx, &held_stmt, held_shape, rows, err,
	    v_text(proxy_origin(side->proxy)), v_text(side->host));
}

/* ---- the nodes with each other ---- */

static void compare_one(
    const struct held *a, const struct held *b, struct verdict *verdict)
{
	if (strcmp(a->content, b->content) == 0 &&
	    strcmp(a->rest, b->rest) == 0)
		return;
	verdict->differing++;
	check_say("differs", a->key, a->content);
	check_say("differs", b->key, b->content);
}

static void compare(
    const struct rows *left, const struct rows *right, struct verdict *verdict)
{
	const struct held *a = left->items;
	const struct held *b = right->items;
	size_t i = 0;
	size_t j = 0;

	while (i < left->count || j < right->count) {
		int order = i == left->count ? 1
		    : j == right->count	     ? -1
					     : strcmp(a[i].key, b[j].key);

		if (order == 0) {
			compare_one(&a[i++], &b[j++], verdict);
			continue;
		}
		verdict->missing++;
		if (order < 0) {
			check_say("only on nova", a[i].key, a[i].content);
			i++;
		} else {
			check_say("only on orbit", b[j].key, b[j].content);
			j++;
		}
	}
}

static int by_content(const void *a, const void *b)
{
	const struct held *const *left = a;
	const struct held *const *right = b;

	return strcmp((*left)->content, (*right)->content);
}

/* Every text is written once, so two that are alike are one, doubled. */
static void find_doubled(
    struct arena *arena, const struct rows *rows, struct verdict *verdict)
{
	const struct held *all = rows->items;
	const struct held **sorted =
	    arena_array(arena, rows->count + 1, sizeof(*sorted));

	for (size_t i = 0; i < rows->count; i++)
		sorted[i] = &all[i];
	qsort(sorted, rows->count, sizeof(*sorted), by_content);
	for (size_t i = 1; i < rows->count; i++) {
		if (strcmp(sorted[i - 1]->content, sorted[i]->content) != 0)
			continue;
		verdict->doubled++;
		check_say("doubled", sorted[i]->key, sorted[i]->content);
	}
}

static bool sides_compare(const struct site *site, struct arena *arena,
    struct rows rows[SIDES], struct verdict *verdict, struct err *err)
{
	for (int s = 0; s < SIDES; s++) {
		int64_t dead;

		if (!held_read(&site->sides[s], arena, &rows[s], err))
			return false;
		find_doubled(arena, &rows[s], verdict);
		dead = side_number(
		    &site->sides[s], "SELECT count(*) AS n FROM dead_letters");
		if (dead != 0)
			check_say("dead letters", site->sides[s].name,
			    test_db_text(arena, site->sides[s].database,
				"SELECT string_agg(DISTINCT why, ', ') AS t"
				" FROM dead_letters"));
		verdict->dead += (int)dead;
	}
	verdict->messages = (int64_t)rows[0].count;
	compare(&rows[0], &rows[1], verdict);
	return true;
}

bool check_same(
    const struct site *site, struct verdict *verdict, struct err *err)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	struct rows rows[SIDES] = { { NULL, 0 } };

	return sides_compare(site, arena, rows, verdict, err);
}

/* ---- the nodes with what people were told ---- */

static int key_compare(const void *key, const void *held)
{
	return strcmp(key, ((const struct held *)held)->key);
}

static void note_check(
    const struct note *note, const struct held *held, struct verdict *verdict)
{
	if (note->state == NOTE_UNSURE)
		return;
	if (note->state == NOTE_GONE && held) {
		verdict->differing++;
		check_say("deleted but there", note->id, held->content);
	} else if (note->state == NOTE_LIVE && !held) {
		verdict->missing++;
		check_say("acknowledged but lost", note->id, note->content);
	} else if (held && strcmp(held->content, note->content) != 0 &&
	    strcmp(held->content, note->maybe) != 0) {
		verdict->differing++;
		check_say("not as acknowledged", note->content, held->content);
	}
}

static void actor_check(const struct actor *actor, struct arena *arena,
    const struct rows *rows, struct verdict *verdict)
{
	const struct side *side = &actor->crowd->site->sides[actor->side];

	for (size_t i = 0; i < actor->count; i++) {
		const struct note *note = &actor->notes[i];
		const char *key = arena_printf(
		    arena, "%s %s", proxy_origin(side->proxy), note->id);

		note_check(note,
		    bsearch(key, rows->items, rows->count, sizeof(struct held),
			key_compare),
		    verdict);
	}
	verdict->differing += actor->faults;
}

bool check_all(const struct site *site, const struct crowd *crowd,
    struct verdict *verdict, struct err *err)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	struct rows rows[SIDES] = { { NULL, 0 } };

	*verdict = (struct verdict){ 0 };
	if (!sides_compare(site, arena, rows, verdict, err))
		return false;
	for (int i = 0; i < ACTORS; i++)
		actor_check(&crowd->actors[i], arena,
		    &rows[crowd->actors[i].side], verdict);
	for (int s = 0; s < SIDES; s++)
		if (!check_order(site, s, verdict, err))
			return false;
	return true;
}

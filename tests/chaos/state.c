#include "tests/chaos/state.h"

#include "common/pg/sql.h"
#include "tests/chaos/check.h"
#include "tests/lib/test_db.h"

/* clang-format off */
static const struct shape line_shape[] = {
	SHAPE(TEXT, struct state_line, scope, NULL),
	SHAPE(TEXT, struct state_line, key, NULL),
	SHAPE(TEXT, struct state_line, value, NULL),
	SHAPE(BOOL, struct state_line, needed, NULL),
	SHAPE(TIME, struct state_line, at, NULL),
	SHAPE_END(struct state_line),
};
/* clang-format on */

/*
 * $1 the node's host. A message is named by where it was written, whoever sent
 * it on. A group's message is needed elsewhere
 * only if nobody has ever left the group (who was away knows no changes), and
 * it was written after the other node came to know the group. A pair without a
 * message is nobody else's business.
 */
static const struct stmt state_stmt = { "state",
	"WITH who AS (SELECT id, coalesce(home_instance, $1::text) || '/'"
	"    || coalesce(home_user_id, id::text) AS name, bio,"
	"    coalesce(display_name, CASE WHEN home_instance IS NULL"
	"      THEN username END) AS shown,"
	"    profile_updated_at FROM users WHERE NOT is_deleted),"
	"conv AS (SELECT c.id, c.is_group, c.created_at, owner.name AS owner,"
	"    in_it.names, CASE WHEN c.is_group THEN 'group ' || c.federated_id"
	"    ELSE 'pair ' || in_it.names END AS scope,"
	"    EXISTS (SELECT FROM conversation_events e"
	"      WHERE e.conversation_id = c.id AND e.kind = 'member_removed')"
	"    AS was_left"
	"  FROM dm_channels c LEFT JOIN who owner ON owner.id = c.owner_id"
	"  CROSS JOIN LATERAL (SELECT string_agg(w.name, ' '"
	"      ORDER BY w.name COLLATE \"C\") AS names FROM dm_members m"
	"      JOIN who w ON w.id = m.user_id WHERE m.dm_channel_id = c.id)"
	"    AS in_it"
	"  WHERE c.deleted_at IS NULL AND c.federated_id IS NOT NULL),"
	"lines AS ("
	"  SELECT scope, '' AS key, names || ' of ' || coalesce(owner, '-')"
	"    AS value, is_group AS needed, created_at AS at FROM conv"
	"  UNION ALL"
	"  SELECT conv.scope, 'message ' || coalesce("
	"      (SELECT a.host || ' ' || a.birth_id FROM message_aliases a"
	"        WHERE a.dm_message_id = m.id LIMIT 1),"
	"      split_part(split_part(m.source_instance, '://', 2), ':', 1)"
	"        || ' ' || m.source_message_id,"
	"      $1::text || ' ' || m.id),"
	"    concat_ws(' ', m.content, m.edited_at, (SELECT string_agg("
	"      r.emoji || '=' || w.name, ' ' ORDER BY r.emoji COLLATE \"C\","
	"      w.name COLLATE \"C\") FROM dm_reactions r"
	"      JOIN who w ON w.id = r.user_id WHERE r.dm_message_id = m.id)),"
	"    NOT conv.is_group OR NOT conv.was_left,"
	"    CASE WHEN conv.is_group THEN m.created_at END"
	"  FROM dm_messages m JOIN conv ON conv.id = m.dm_channel_id"
	"  WHERE m.type = 'user'"
	"  UNION ALL"
	"  SELECT 'friends ' || least(a.name COLLATE \"C\", b.name) || ' '"
	"    || greatest(a.name COLLATE \"C\", b.name), 'are', 'friends', "
	"true, NULL"
	"  FROM friends f JOIN who a ON a.id = f.user_id"
	"  JOIN who b ON b.id = f.friend_id"
	"  UNION ALL"
	"  SELECT 'friends ' || least(a.name COLLATE \"C\", b.name) || ' '"
	"    || greatest(a.name COLLATE \"C\", b.name), 'ask',"
	"    'asked by ' || a.name, true, NULL"
	"  FROM friend_requests f JOIN who a ON a.id = f.from_id"
	"  JOIN who b ON b.id = f.to_id WHERE f.status = 'pending'"
	"  UNION ALL"
	"  SELECT 'person ' || name, 'profile', concat_ws(' | ', bio,"
	"    profile_updated_at), true, NULL"
	"  FROM who WHERE profile_updated_at IS NOT NULL"
	"  UNION ALL"
	"  SELECT 'person ' || name, 'name', shown, true, NULL"
	"  FROM who WHERE shown IS NOT NULL AND profile_updated_at IS NOT NULL)"
	"SELECT scope, key, value, needed, at FROM lines"
	" ORDER BY scope COLLATE \"C\", key COLLATE \"C\"",
	SQL_MANY, 1 };

bool state_read(const struct side *side, struct arena *arena,
    struct rows *lines, struct err *err)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(side->database);
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

	return sql_many(
	    tx, &state_stmt, line_shape, lines, err, v_text(side->host));
}

/* ---- comparing ---- */

static int line_order(const void *a, const void *b)
{
	const struct state_line *left = a;
	const struct state_line *right = b;
	int scopes = strcmp(left->scope, right->scope);

	return scopes ? scopes : strcmp(left->key, right->key);
}

static const struct state_line *line_find(
    const struct rows *lines, const char *scope, const char *key)
{
	const struct state_line wanted = { .scope = scope, .key = key };

	return lines->count ? bsearch(&wanted, lines->items, lines->count,
				  sizeof(wanted), line_order)
			    : NULL;
}

static bool names(const char *text, const struct side *side)
{
	const char *at = text;
	size_t len = strlen(side->host);

	while ((at = strstr(at, side->host)) != NULL) {
		if (at[len] == '/')
			return true;
		at += len;
	}
	return false;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Both take part in it, as a sees it. */
static bool is_shared(const struct rows *of_a, const char *scope,
    const struct side *a, const struct side *b)
{
	const struct state_line *members;

	if (begins(scope, "person "))
		return true;
	if (begins(scope, "friends "))
		return names(scope, a) && names(scope, b);
	members = line_find(of_a, scope, "");
	return members && names(members->value, a) && names(members->value, b);
}

/* Of a person only what both know: his home, and who has heard of a change. Of
 * a group what was said since its node knows it. */
static bool must_be(const struct state_line *line, const struct rows *of_b)
{
	const struct state_line *group = line_find(of_b, line->scope, "");

	return line->needed && !begins(line->scope, "person ") &&
	    (!group || !*line->key || !line->at || line->at > group->at);
}

static int compare(const struct state_line *line, const struct side *a,
    const struct side *b, const struct rows *of_b)
{
	const struct state_line *other =
	    line_find(of_b, line->scope, line->key);

	if (begins(line->scope, "group ") && !line->needed)
		return 0;
	if (other ? strcmp(other->value, line->value) == 0
		  : !must_be(line, of_b))
		return 0;
	fprintf(stderr, "chaos: %s, %s:\n  %s: %s\n  %s: %s\n", line->scope,
	    line->key, a->name, line->value, b->name,
	    other ? other->value : "nothing");
	return 1;
}

int state_differences(const struct side *a, const struct rows *of_a,
    const struct side *b, const struct rows *of_b)
{
	const struct state_line *lines = of_a->items;
	int found = 0;

	for (size_t i = 0; i < of_a->count; i++)
		if (is_shared(of_a, lines[i].scope, a, b))
			found += compare(&lines[i], a, b, of_b);
	return found;
}

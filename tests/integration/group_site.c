#include "tests/integration/group_site.h"

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/lib/test_db.h"

static struct relay_site site;
static struct peer mars;
static int64_t tick; /* ms, of the next event */

void group_site_begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	mars = relay_site_peer(&site, "mars.test");
	tick = clock_wall_ms() - 3600 * 1000;
}

void group_site_end(void)
{
	relay_site_end(&site);
}

struct relay_site *group_site(void)
{
	return &site;
}

const struct peer *group_mars(void)
{
	return &mars;
}

const char *group_text(const char *query)
{
	return relay_site_text(&site, query);
}

const char *with_ids(const char *text)
{
	const char *names[] = { "$alice", "$bob" };
	int64_t ids[] = { site.alice, site.bob };

	for (size_t i = 0; i < COUNT(names); i++)
		for (const char *at; (at = strstr(text, names[i]));)
			text = arena_printf(site.arena, "%.*s%" PRId64 "%s",
			    (int)(at - text), text, ids[i],
			    at + strlen(names[i]));
	return text;
}

const char *told_event(
    const char *type, const char *id, const char *group, const char *members)
{
	return with_ids(arena_printf(site.arena,
	    "{\"eventType\":\"%s\",\"contextType\":\"dm\",\"messageId\":\"%s\","
	    "\"encryptionVersion\":0,\"timestamp\":%" PRId64
	    ",\"dmChannelId\":\"9\",\"federatedId\":\"%s\",%s}",
	    type, id, tick += 1000, group, members));
}

const char *told_add_to(const char *id, const char *group, const char *who,
    const char *by, const char *roster)
{
	return told_event("member_add", id, group,
	    arena_printf(site.arena,
		"\"membership\":{\"user\":%s,\"addedBy\":%s}%s", who, by,
		roster));
}

const char *told_add(
    const char *id, const char *who, const char *by, const char *roster)
{
	return told_add_to(id, FED, who, by, roster);
}

const char *told_removal(
    const char *id, const char *who, const char *by, const char *reason)
{
	return told_event("member_remove", id, FED,
	    arena_printf(site.arena,
		"\"membership\":{\"user\":%s,\"removedBy\":%s,"
		"\"reason\":\"%s\"}",
		who, by, reason));
}

const char *told_transfer(const char *id, const char *to, const char *from)
{
	return told_event("ownership_transfer", id, FED,
	    arena_printf(site.arena,
		"\"ownership\":{\"newOwner\":%s,\"previousOwner\":%s}", to,
		from));
}

const char *told_message(const char *id, const char *author)
{
	return told_event("create", id, FED,
	    arena_printf(site.arena,
		"\"participants\":[%s,%s],\"message\":{\"content\":\"hi\","
		"\"createdAt\":1,%s",
		author, ALICE, author + 1));
}

const char *from_luna(const char *events)
{
	return relay_site_send(&site, events);
}

const char *from_mars(const char *events)
{
	return relay_site_apply(&site, site.conn, &mars, events, false);
}

int64_t group_count(const char *what)
{
	return relay_site_number(&site,
	    arena_printf(site.arena, "SELECT count(*) AS n FROM %s", what));
}

void group_sql(const char *script)
{
	test_db_script(site.conninfo, script);
}

/* name or home id of the members, the owner with a star. */
const char *group_members(void)
{
	return group_text(
	    "SELECT string_agg(coalesce(u.home_user_id, u.username) || CASE "
	    "WHEN c.owner_id = u.id THEN '*' ELSE '' END, ' ' ORDER BY "
	    "coalesce(u.home_user_id, u.username)) AS t FROM dm_channels c "
	    "JOIN dm_members m ON m.dm_channel_id = c.id JOIN users u ON u.id "
	    "= m.user_id WHERE c.is_group");
}

/* What must not change when nothing happens. */
const char *group_state(void)
{
	return group_text(
	    "SELECT concat_ws('/', (SELECT string_agg(seq || ' ' || "
	    "(deleted_at IS NULL) || owner_id, ',' ORDER BY id) FROM "
	    "dm_channels), (SELECT count(*) FROM users), (SELECT "
	    "count(*) "
	    "FROM dm_messages), (SELECT count(*) FROM user_events), "
	    "(SELECT "
	    "string_agg(dm_channel_id || ' ' || user_id, ',' ORDER BY 1) FROM "
	    "(SELECT * FROM dm_members ORDER BY 1, 2) m), (SELECT "
	    "string_agg(user_id || ' ' || last_read_message_id, ',') FROM "
	    "read_states), (SELECT count(*) FROM federation_outbox)) AS "
	    "t");
}

void group_begin(void)
{
	cr_assert_str_eq(
	    from_luna(told_add("g0", ALICE, ZED, THREE)), ACCEPTED("\"g0\""));
}

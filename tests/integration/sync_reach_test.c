/* Who may read what of the log: what the asker takes part in. */
#include <criterion/criterion.h>

#include "tests/integration/sync_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(sync_reach, .init = begin, .fini = end, .timeout = 300);

static const char *told(const char *host, const char *context_type)
{
	return sync_site_types(&site,
	    sync_site_ask(&site, host,
		arena_printf(site.arena,
		    "{\"sinceTimestamp\":0,\"contextType\":\"%s\"}",
		    context_type)));
}

static void log_event(const char *context_type, const char *context_id,
    const char *event_type, const char *payload, const char *hosts)
{
	sync_site_log(&site,
	    &(struct sync_log_row){ context_type, context_id, event_type,
		event_type, payload, hosts });
}

static void sql(const char *script)
{
	test_db_script(site.conninfo, script);
}

/* ---- conversations ---- */

Test(sync_reach, a_third_node_gets_nothing)
{
	int64_t zed = sync_site_person(&site, "luna.test", "700");
	int64_t pair = sync_site_pair(&site, site.alice, zed);

	sync_site_say(&site, pair, site.alice, "hello");
	sync_site_say(&site, sync_site_pair(&site, site.alice, site.bob),
	    site.alice, "between us");
	cr_expect_str_eq(told("luna.test", "dm"), "create");
	cr_expect_str_eq(told("orbit.test", "dm"), "");
}

Test(sync_reach, history_is_there_for_a_peer_that_comes_later)
{
	int64_t kim = sync_site_person(&site, "later.test", "9");

	sync_site_say(
	    &site, sync_site_pair(&site, site.alice, kim), site.alice, "hello");
	relay_site_peer(&site, "later.test");
	cr_expect_str_eq(told("later.test", "dm"), "create");
}

static int64_t group_of(const char *members)
{
	return sync_site_group(&site, "g-1", site.alice,
	    arena_printf(site.arena, "%" PRId64 "%s", site.alice, members));
}

Test(sync_reach, who_left_gets_what_was_until_then)
{
	int64_t zed = sync_site_person(&site, "luna.test", "700");
	int64_t group = group_of(arena_printf(site.arena, ", %" PRId64, zed));

	sync_site_say(&site, group, site.alice, "one");
	sql(arena_printf(site.arena,
	    "DELETE FROM dm_members WHERE user_id = %" PRId64, zed));
	log_event("dm", arena_printf(site.arena, "%" PRId64, group),
	    "member_remove", "", "'luna.test'");
	sync_site_say(&site, group, site.alice, "two");
	cr_expect_str_eq(told("luna.test", "dm"), "create member_remove");
}

Test(sync_reach, who_is_added_to_a_group_finds_what_was_there)
{
	int64_t zed = sync_site_person(&site, "luna.test", "700");
	int64_t group = group_of("");
	const char *context = arena_printf(site.arena, "%" PRId64, group);
	const char *later;
	const char *answer;

	sync_site_say(&site, group, site.alice, "before");
	cr_expect_str_eq(told("luna.test", "dm"), "");
	sql(arena_printf(site.arena,
	    "INSERT INTO dm_members VALUES (%s, %" PRId64 ")", context, zed));
	log_event("dm", context, "member_add", "", "'luna.test'");
	answer = sync_site_ask(&site, "luna.test", "{\"sinceTimestamp\":0}");
	cr_expect_str_eq(sync_site_types(&site, answer), "member_add create");
	/* And only once. */
	sync_site_say(&site, group, site.alice, "after");
	later = sync_site_ask(&site, "luna.test",
	    arena_printf(site.arena, "{\"sinceTimestamp\":%" PRId64 "}",
		sync_site_checkpoint(answer)));
	cr_expect_str_eq(sync_site_types(&site, later), "create");
	cr_expect_str_eq(told("luna.test", "dm"), "member_add create create");
}

Test(sync_reach, a_declared_account_opens_its_persons_conversations)
{
	sync_site_say(&site, sync_site_pair(&site, site.alice, site.bob),
	    site.alice, "before");
	log_event("profile", arena_printf(site.arena, "%" PRId64, site.bob),
	    "profile_update", "\"profileUpdate\":{}", "");
	cr_expect_str_eq(told("luna.test", "dm"), "");
	sql("UPDATE users SET replicated_instances = "
	    "'[{\"origin\":\"https://LUNA.test:443/\"}]' "
	    "WHERE username = 'alice'");
	cr_expect_str_eq(told("luna.test", "dm"), "create");
	cr_expect_str_eq(told("orbit.test", "dm"), "");
	/* With her conversation come the profiles of those in it. */
	cr_expect_str_eq(told("luna.test", "profile"), "profile_update");
	sql("UPDATE users SET replicated_instances = '[\"odd\", {}]' "
	    "WHERE username = 'alice'");
	sql("UPDATE users SET replicated_instances = '{\"odd\": 1}' "
	    "WHERE username = 'alice'");
}

Test(sync_reach, what_came_homeward_is_for_the_authors_home_only)
{
	int64_t zed = sync_site_person(&site, "luna.test", "700");
	int64_t kim = sync_site_person(&site, "orbit.test", "9");
	int64_t group = group_of(
	    arena_printf(site.arena, ", %" PRId64 ", %" PRId64, zed, kim));

	/* zed writes with his account here; his own node tells the others. */
	sync_site_say(&site, group, zed, "from here");
	sync_site_say(&site, group, site.alice, "mine");
	cr_expect_str_eq(told("luna.test", "dm"), "create create");
	cr_expect_str_eq(told("orbit.test", "dm"), "create");
}

Test(sync_reach, what_came_from_a_node_never_goes_back_to_it)
{
	sql("INSERT INTO federation_mutation_log (context_type, context_id, "
	    "mutation_type, entity_id, payload, hosts, except_host) VALUES "
	    "('dm', '5', 'delete', '1', '', '{luna.test}', 'orbit.test'), "
	    "('dm', '5', 'delete', '2', '', '{luna.test,orbit.test}', NULL)");
	cr_expect_str_eq(told("orbit.test", "dm"), "delete");
	cr_expect_str_eq(told("luna.test", "dm"), "delete delete");
}

Test(sync_reach, a_conversation_that_is_gone_is_told_no_more)
{
	int64_t zed = sync_site_person(&site, "luna.test", "700");
	int64_t pair = sync_site_pair(&site, site.alice, zed);

	sync_site_say(&site, pair, site.alice, "hello");
	cr_expect_str_eq(told("luna.test", "dm"), "create");
	sql("DELETE FROM dm_channels");
	cr_expect_str_eq(told("luna.test", "dm"), "");
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM federation_sync_entries"),
	    0);
}

/* ---- friends, profiles ---- */

static const char *profile_of(int64_t person)
{
	return arena_printf(site.arena, "%" PRId64, person);
}

Test(sync_reach, a_friendship_brings_the_profile_of_our_side)
{
	const char *alice = profile_of(site.alice);

	log_event("profile", alice, "profile_update", "\"profileUpdate\":{}",
	    "'orbit.test'");
	log_event("profile", profile_of(site.bob), "profile_update",
	    "\"profileUpdate\":{}", "'orbit.test'");
	log_event("friend", arena_printf(site.arena, "friend:%s:700", alice),
	    "friend_add",
	    arena_printf(site.arena,
		"\"friendship\":{\"from\":{\"homeUserId\":\"%s\","
		"\"homeInstance\":\"https://nova.test\"},\"to\":{"
		"\"homeUserId\":\"%s\",\"homeInstance\":\"luna.test\"}}",
		alice, profile_of(site.bob)),
	    "'luna.test'");
	cr_expect_str_eq(told("luna.test", "friend"), "friend_add");
	/* bob's number at luna is not our bob. */
	cr_expect_str_eq(told("luna.test", "profile"), "profile_update");
	cr_expect_str_eq(
	    told("orbit.test", "profile"), "profile_update profile_update");
	cr_expect_str_eq(told("orbit.test", "friend"), "");
}

Test(sync_reach, the_profile_of_who_is_deleted_is_gone)
{
	log_event("profile", profile_of(site.alice), "profile_update",
	    "\"profileUpdate\":{}", "'luna.test'");
	cr_expect_str_eq(told("luna.test", "profile"), "profile_update");
	sql("UPDATE users SET is_deleted = true WHERE username = 'alice'");
	cr_expect_str_eq(told("luna.test", "profile"), "");
}

Test(sync_reach, a_payload_that_is_no_json_stops_nobody)
{
	log_event("friend", "friend:1:2", "friend_add", "\"friendship\":{",
	    "'luna.test'");
	log_event("dm", "not a number", "delete", "", "'luna.test'");
	log_event("dm", "5", "delete", "", "'luna.test'");
	cr_expect_str_eq(told("luna.test", "dm"), "delete delete");
}

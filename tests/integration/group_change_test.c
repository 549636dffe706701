/* Groups told by other nodes: what counts once; leaving, removing, owning. */
#include <criterion/criterion.h>

#include "tests/integration/group_site.h"
#include "tests/lib/test_db.h"

TestSuite(group_change, .init = group_site_begin, .fini = group_site_end,
    .timeout = 300);

/* ---- what counts once ---- */

Test(group_change, replays_change_nothing_whatever_came_after)
{
	const char *in = told_add("g1", BOB, ZED, "");
	const char *out = told_removal("g2", BOB, ZED, "kick");
	const char *again = told_add("g3", BOB, ZED, "");
	const char *to_yan;
	const char *back;
	const char *start = told_add("g0", ALICE, ZED, THREE);
	const char *before;

	from_luna(start);
	from_luna(told_add("g00", YAN, ZED, ""));
	cr_expect_str_eq(from_luna(in), ACCEPTED("\"g1\""));
	cr_expect_str_eq(from_luna(out), ACCEPTED("\"g2\""));
	cr_expect_str_eq(from_luna(again), ACCEPTED("\"g3\""));
	to_yan = told_transfer("g4", YAN, ZED);
	back = told_transfer("g5", ZED, YAN);
	cr_expect_str_eq(from_luna(to_yan), ACCEPTED("\"g4\""));
	cr_expect_str_eq(from_luna(back), ACCEPTED("\"g5\""));
	group_sql("INSERT INTO read_states SELECT m.user_id, m.dm_channel_id, "
		  "(SELECT max(id) FROM dm_messages) FROM dm_members m");
	cr_expect_str_eq(group_members(), "300 700* 701 alice bob");
	cr_expect_eq(group_count("dm_messages"), 6, "a notice each");
	before = group_state();
	for (int i = 0; i < 5; i++) {
		const char *const all[] = { start, in, out, again, to_yan,
			back };

		for (size_t j = 0; j < COUNT(all); j++) {
			from_luna(all[j]);
			relay_site_apply(group_site(), group_site()->conn,
			    &group_site()->luna, all[j], true);
		}
	}
	cr_expect_str_eq(group_state(), before);
}

Test(group_change, an_addition_from_before_brings_nobody_back)
{
	const char *late = told_add("g1", MIA, ZED, "");
	const char *leave = told_removal("g2", MIA, MIA, "leave");

	from_luna(told_add("g0", ALICE, ZED, ROSTER(ZED, ZED "," ALICE)));
	/* mars is known by name only: its person has a row from elsewhere. */
	group_sql(
	    "INSERT INTO users (username, password_hash, home_instance, "
	    "home_user_id) VALUES ('300@mars.test', '!federation-replicated', "
	    "'mars.test', '300')");
	cr_expect_str_eq(from_mars(leave), ACCEPTED("\"g2\""));
	cr_expect_str_eq(from_luna(late), ACCEPTED("\"g1\""));
	cr_expect_str_eq(group_members(), "700* alice");
	cr_expect_str_eq(
	    from_luna(told_add("g3", MIA, ZED, "")), ACCEPTED("\"g3\""));
	cr_expect_str_eq(group_members(), "300 700* alice");
}

/* ---- leaving, removing, owning ---- */

Test(group_change, only_the_owner_removes_others)
{
	group_begin();
	cr_expect_str_eq(from_mars(told_removal("g1", ALICE, MIA, "kick")),
	    REJECTED("g1", "unauthorized_source"));
	cr_expect_str_eq(from_luna(told_removal("g2", ALICE, YAN, "kick")),
	    REJECTED("g2", "unauthorized_source"));
	cr_expect_str_eq(from_luna(told_removal("g3", ALICE, MIA, "kick")),
	    REJECTED("g3", "attribution_mismatch"));
	cr_expect_str_eq(group_members(), "300 700* alice");
	cr_expect_str_eq(
	    from_luna(told_removal("g4", LUNA("nobody"), ZED, "kick")),
	    ACCEPTED("\"g4\""));
	cr_expect_str_eq(from_luna(told_removal("g5", ALICE, ZED, "kick")),
	    ACCEPTED("\"g5\""));
	cr_expect_str_eq(group_members(), "300 700*");
	cr_expect_str_eq(
	    group_text("SELECT string_agg(kind, ' ' ORDER BY seq) AS t FROM "
		       "user_events"),
	    "channel_joined channel_left");
	cr_expect_eq(group_count("dm_messages WHERE content LIKE "
				 "'%\"reason\":\"kick\"}'"),
	    1);
}

/* Known fault: owner's home stored in one spelling, told in another. */
Test(group_change, a_group_that_moves_between_nodes_obeys_each_owner)
{
	static const char *const spellings[] = { "luna.test",
		"https://luna.test", "https://LUNA.test:443/" };

	for (size_t i = 0; i < COUNT(spellings); i++) {
		const char *zed = arena_printf(group_site()->arena,
		    "{\"homeUserId\":\"700\",\"homeInstance\":\"%s\"}",
		    spellings[i]);
		const char *n = arena_printf(group_site()->arena, "%zu", i);

		group_sql("DELETE FROM dm_channels; DELETE FROM events_heard");
		from_luna(told_add(n, ALICE, ZED,
		    ROSTER(ZED, ALICE "," ZED "," YAN "," MIA "," BOB)));
		/* Both spellings, preset by hand. */
		group_sql(arena_printf(group_site()->arena,
		    "UPDATE dm_channels SET owner_home_instance = '%s'",
		    spellings[i]));
		cr_expect(strstr(
		    from_luna(told_removal("k1", YAN, zed, "kick")), "[\"k1"));
		cr_expect(
		    strstr(from_luna(told_transfer("t1", MIA, zed)), "[\"t1"));
		cr_expect(
		    strstr(from_luna(told_removal("k2", BOB, zed, "kick")),
			"unauthorized"));
		cr_expect(strstr(
		    from_mars(told_removal("k3", BOB, MIA, "kick")), "[\"k3"));
		cr_expect(
		    strstr(from_mars(told_transfer("t2", zed, MIA)), "[\"t2"));
		cr_expect(
		    strstr(from_luna(told_transfer("t3", MIA, zed)), "[\"t3"));
		cr_expect_str_eq(group_members(), "300* 700 alice");
	}
}

/* Given away and given back, heard of from two nodes the wrong way round. */
Test(group_change, a_group_that_came_back_waits_for_its_leaving)
{
	const char *back;

	group_begin();
	group_sql("UPDATE dm_channels SET created_at = to_timestamp(0)");
	back = told_transfer("g2", ZED, MIA);
	cr_expect_str_eq(
	    from_mars(back), REJECTED("g2", "unauthorized_source"));
	cr_expect_str_eq(
	    from_luna(told_transfer("g1", MIA, ZED)), ACCEPTED("\"g1\""));
	cr_expect_str_eq(group_members(), "300* 700 alice");
	cr_expect_str_eq(from_mars(back), ACCEPTED("\"g2\""));
	cr_expect_str_eq(group_members(), "300 700* alice");
}

Test(group_change, no_owner_is_ever_nobody)
{
	group_begin();
	group_sql("INSERT INTO users (username, password_hash, home_instance, "
		  "home_user_id, is_deleted) VALUES ('!deleted:1', 'x', "
		  "'luna.test', '9', true)");
	cr_expect_str_eq(from_luna(told_transfer("g1", LUNA("8"), ZED)),
	    REJECTED("g1", "unauthorized_source"));
	cr_expect_str_eq(from_luna(told_transfer("g2", LUNA("9"), ZED)),
	    REJECTED("g2", "participant_not_found"));
	cr_expect_str_eq(from_luna(told_transfer("g3", BOB, ZED)),
	    REJECTED("g3", "unauthorized_source"));
	cr_expect_str_eq(from_mars(told_transfer("g4", MIA, MIA)),
	    REJECTED("g4", "unauthorized_source"));
	cr_expect_str_eq(group_members(), "300 700* alice");
	cr_expect_str_eq(
	    from_luna(told_transfer("g5", ALICE, ZED)), ACCEPTED("\"g5\""));
	cr_expect_str_eq(group_members(), "300 700 alice*");
	cr_expect_eq(
	    group_count("dm_channels WHERE is_group AND owner_id IS NULL"), 0);
}

Test(group_change, an_owner_leaves_and_passes_it_on)
{
	group_begin();
	cr_expect_str_eq(from_luna(arena_printf(group_site()->arena, "%s,%s",
			     told_removal("g1", ZED, ZED, "leave"),
			     told_transfer("g2", ALICE, ZED))),
	    ACCEPTED("\"g1\",\"g2\""));
	cr_expect_str_eq(group_members(), "300 alice*");
	cr_expect_str_eq(
	    group_text("SELECT string_agg(kind, ' ' ORDER BY seq) AS t FROM "
		       "conversation_events"),
	    "channel_created message_created member_removed owner_changed "
	    "message_created");
}

/* ---- nobody of ours, nobody at all ---- */

Test(group_change, an_addition_cancels_the_deletion)
{
	group_begin();
	from_luna(told_removal("g1", ALICE, ZED, "kick"));
	from_mars(told_removal("g2", MIA, MIA, "leave"));
	from_luna(told_removal("g3", ZED, ZED, "leave"));
	cr_expect_eq(
	    group_count("dm_channels WHERE deleted_at IS NOT NULL"), 1);
	cr_expect_str_eq(from_luna(told_message("m1", ZED)),
	    REJECTED("m1", "channel_not_found"));
	cr_expect_str_eq(
	    from_luna(told_add("g4", ALICE, ZED, THREE)), ACCEPTED("\"g4\""));
	cr_expect_eq(
	    group_count("dm_channels WHERE deleted_at IS NOT NULL"), 0);
	cr_expect_str_eq(group_members(), "300 700* alice");
	cr_expect_str_eq(
	    from_luna(told_message("m2", ZED)), ACCEPTED("\"m2\""));
}

Test(group_change, who_comes_back_finds_the_group_as_it_is_now)
{
	const char *back;

	group_begin();
	from_luna(told_removal("g1", ALICE, ZED, "kick"));
	/* Meanwhile, without us: mia has gone, yan has come and owns it. */
	back = told_add("g2", ALICE, YAN, ROSTER(YAN, ZED "," YAN "," ALICE));
	cr_expect_str_eq(from_luna(back), ACCEPTED("\"g2\""));
	cr_expect_str_eq(group_members(), "700 701* alice");
	cr_expect_str_eq(
	    group_text(
		"SELECT kind AS t FROM user_events ORDER BY seq DESC LIMIT 1"),
	    "channel_joined");
}

/* Who adds alice again has not heard yet that bob, who is ours, has left. */
Test(group_change, who_of_ours_is_in_a_renewed_group_is_not_for_others_to_say)
{
	group_begin();
	from_mars(told_add("g1", BOB, MIA, ""));
	cr_expect_str_eq(group_members(), "300 700* alice bob");
	from_luna(told_removal("g2", ALICE, ZED, "kick"));
	from_luna(told_removal("g3", BOB, ZED, "kick"));
	cr_expect_str_eq(from_luna(told_add("g4", ALICE, ZED,
			     ROSTER(ZED, SITE_ZED "," ALICE "," BOB "," MIA))),
	    ACCEPTED("\"g4\""));
	cr_expect_str_eq(group_members(), "300 700* alice");
}

Test(group_change, a_node_without_a_part_renews_nothing)
{
	struct peer evil = relay_site_peer(group_site(), "evil.test");
	const char *eve =
	    "{\"homeUserId\":\"1\",\"homeInstance\":\"evil.test\"}";
	const char *before;

	group_begin();
	from_luna(told_removal("g1", ALICE, ZED, "kick"));
	before = group_state();
	cr_expect_str_eq(
	    relay_site_apply(group_site(), group_site()->conn, &evil,
		told_add("g2", BOB, eve,
		    with_ids(arena_printf(group_site()->arena,
			",\"group\":{\"owner\":%s,\"members\":[%s,%s]}", eve,
			eve, BOB))),
		false),
	    REJECTED("g2", "unauthorized_source"));
	cr_expect_str_eq(group_state(), before);
	cr_expect_str_eq(group_members(), "300 700*");
}

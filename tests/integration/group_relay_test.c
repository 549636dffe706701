/* Groups told by other nodes: how they begin, who joins, what goes on. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "tests/integration/group_site.h"
#include "tests/lib/test_db.h"

TestSuite(group_relay, .init = group_site_begin, .fini = group_site_end,
    .timeout = 300);

/* ---- beginning ---- */

Test(group_relay, a_roster_begins_a_group)
{
	const char *second = told_add("g2", MIA, ZED, THREE);
	const char *before;

	cr_expect_str_eq(
	    from_luna(told_add("g1", ALICE, ZED, THREE)), ACCEPTED("\"g1\""));
	cr_expect_str_eq(group_members(), "300 700* alice");
	cr_expect_str_eq(
	    group_text(
		"SELECT u.username || ' ' || u.display_name || ' ' || "
		"c.owner_home_user_id || ' ' || c.owner_home_instance AS t "
		"FROM users u JOIN dm_channels c ON c.owner_id = u.id"),
	    "700@luna.test Zed 700 luna.test");
	cr_expect_str_eq(
	    group_text(
		"SELECT u.username || ' ' || e.kind AS t FROM user_events e "
		"JOIN users u ON u.id = e.user_id"),
	    "alice channel_joined");
	cr_expect_eq(group_count("dm_messages"), 0, "no notice of a beginning");
	before = group_state();
	cr_expect_str_eq(from_luna(second), ACCEPTED("\"g2\""));
	cr_expect_str_eq(group_state(), before);
}

Test(group_relay, events_of_one_batch_build_on_each_other)
{
	const char *batch = arena_printf(group_site()->arena,
	    "%s,%s,%s,%s,%s,%s", told_add("g1", ALICE, ZED, THREE),
	    told_add("g2", MIA, ZED, THREE), told_message("m1", ZED),
	    told_add("g3", YAN, ZED, ""), told_message("m2", YAN),
	    told_removal("g4", YAN, YAN, "leave"));

	cr_expect_str_eq(from_luna(arena_printf(group_site()->arena, "%s,%s",
			     batch, told_message("m3", YAN))),
	    ANSWER("\"g1\",\"g2\",\"m1\",\"g3\",\"m2\",\"g4\"",
		REFUSAL("m3", "unauthorized_source")));
	cr_expect_str_eq(group_members(), "300 700* alice");
	cr_expect_str_eq(
	    group_text("SELECT string_agg(kind, ' ' ORDER BY seq) AS t FROM "
		       "conversation_events"),
	    "channel_created message_created member_added message_created "
	    "message_created message_created member_removed");
}

Test(group_relay, what_concerns_nobody_here_is_forgotten)
{
	const char *before = group_state();

	cr_expect_str_eq(
	    from_luna(told_add("g1", MIA, ZED, ROSTER(ZED, ZED "," MIA))),
	    ACCEPTED("\"g1\""));
	cr_expect_str_eq(from_luna(told_removal("g2", ZED, ZED, "leave")),
	    ACCEPTED("\"g2\""));
	cr_expect_str_eq(
	    from_luna(told_transfer("g3", YAN, ZED)), ACCEPTED("\"g3\""));
	cr_expect_str_eq(group_state(), before);
	cr_expect_eq(group_count("events_heard"), 0);
	cr_expect_eq(group_count("users"), 2);
}

struct refused {
	const char *event;
	const char *reason;
};

static void expect_refused(const struct refused *rows, size_t n)
{
	const char *before = group_state();

	for (size_t i = 0; i < n; i++) {
		const char *answer = from_luna(rows[i].event);

		cr_expect_str_eq(answer,
		    arena_printf(group_site()->arena, REJECTED("g", "%s"),
			rows[i].reason),
		    "row %zu: %s, wanted %s", i, answer, rows[i].reason);
	}
	cr_expect_str_eq(group_state(), before);
	cr_expect_eq(group_count("users"), 2, "nobody was made");
}

Test(group_relay, a_roster_that_may_not_begin_leaves_nothing)
{
	const struct refused rows[] = {
		{ told_add("g", ALICE, ZED, ""), "channel_not_found" },
		{ told_add("g", ALICE, ZED, ROSTER(LUNA("702"), ALICE)),
		    "unauthorized_source" },
		{ told_add("g", ALICE, ZED, ROSTER(MIA, MIA "," ZED "," ALICE)),
		    "attribution_mismatch" },
		{ told_add("g", ALICE, MIA, THREE), "attribution_mismatch" },
		{ told_add("g", ALICE, BOB, ROSTER(BOB, BOB "," ALICE)),
		    "attribution_mismatch" },
		{ told_add("g",
		      "{\"homeUserId\":\"5\",\"homeInstance\":"
		      "\"nova.test\"}",
		      ZED, THREE),
		    "participant_not_found" },
		{ told_add("g", ALICE, ZED,
		      ROSTER(ZED,
			  ALICE
			  "," LUNA("1") "," LUNA("2") "," LUNA("3") "," LUNA("4") "," LUNA("5") "," LUNA(
			      "6") "," LUNA("7") "," LUNA("8") "," LUNA("9") "," ZED)),
		    "max_members_exceeded" },
	};

	expect_refused(rows, COUNT(rows));
}

Test(group_relay, what_has_no_form_is_refused_with_the_recorded_words)
{
	const struct refused rows[] = {
		{ told_add("g", ALICE, ZED, ROSTER(ZED, ALICE ",null")),
		    "missing_membership_payload" },
		{ told_add("g", ALICE, ZED, ROSTER("5", ALICE)),
		    "missing_membership_payload" },
		{ told_add("g", "{}", ZED, THREE),
		    "missing_membership_payload" },
		{ told_add("g", ALICE, "null", THREE),
		    "missing_membership_payload" },
		{ told_add(
		      "g", ALICE, "{\"homeInstance\":\"luna.test\"}", THREE),
		    "missing_membership_payload" },
		{ told_add_to("g", "", ALICE, ZED, THREE),
		    "missing_membership_payload" },
		{ told_add_to("g", "0123456789abcdef0123456789abcdef", ALICE,
		      ZED, THREE),
		    "missing_membership_payload" },
		{ told_removal("g", ZED, YAN, "leave"), "unauthorized_source" },
		{ told_removal("g", ZED, MIA, "kick"), "attribution_mismatch" },
		{ told_transfer("g", YAN, MIA), "attribution_mismatch" },
		{ told_transfer("g", "null", ZED),
		    "missing_ownership_payload" },
		{ told_transfer("g", YAN, "null"),
		    "missing_ownership_payload" },
		{ "{\"eventType\":\"member_add\",\"messageId\":\"g\"}",
		    "missing_membership_payload" },
		{ "{\"eventType\":\"member_remove\",\"messageId\":\"g\"}",
		    "missing_membership_payload" },
		{ "{\"eventType\":\"ownership_transfer\",\"messageId\":"
		  "\"g\"}",
		    "missing_ownership_payload" },
	};

	expect_refused(rows, COUNT(rows));
}

Test(group_relay, the_deleted_are_in_no_roster)
{
	group_sql("INSERT INTO users (username, password_hash, home_instance, "
		  "home_user_id, is_deleted) VALUES ('!deleted:1', 'x', "
		  "'mars.test', '300', true)");
	group_begin();
	cr_expect_str_eq(group_members(), "700* alice");
	cr_expect_str_eq(from_luna(told_add("g1", MIA, ZED, "")),
	    REJECTED("g1", "participant_not_found"));
	cr_expect_str_eq(from_luna(told_transfer("g2", MIA, ZED)),
	    REJECTED("g2", "participant_not_found"));
	cr_expect_str_eq(from_mars(told_removal("g3", MIA, MIA, "leave")),
	    ACCEPTED("\"g3\""));
	cr_expect_str_eq(group_members(), "700* alice");
	cr_expect_eq(group_count("users WHERE home_user_id = '300'"), 1);
}

/* ---- joining ---- */

Test(group_relay, only_members_add_and_ten_is_the_limit)
{
	group_begin();
	cr_expect_str_eq(from_luna(told_add("g1", BOB, YAN, THREE)),
	    REJECTED("g1", "unauthorized_source"));
	cr_expect_str_eq(
	    from_mars(told_add("g2", BOB, MIA, "")), ACCEPTED("\"g2\""));
	cr_expect_str_eq(group_members(), "300 700* alice bob");
	cr_expect_str_eq(
	    group_text(
		"SELECT a.home_user_id || ' ' || replace(m.content, "
		"t.id::text, 'bob') AS t FROM dm_messages m JOIN users a ON "
		"a.id = m.user_id JOIN users t ON t.username = 'bob'"),
	    "300 {\"event\":\"member_added\",\"targetUserId\":\"bob\","
	    "\"targetDisplayName\":\"Bob\"}");
	for (int i = 0; i < 7; i++) {
		const char *id = arena_printf(group_site()->arena, "a%d", i);
		const char *who = arena_printf(group_site()->arena,
		    "{\"homeUserId\":\"71%d\",\"homeInstance\":\"luna.test\"}",
		    i);

		cr_expect_str_eq(from_luna(told_add(id, who, ZED, "")),
		    arena_printf(group_site()->arena,
			i < 6 ? ACCEPTED("\"%s\"")
			      : REJECTED("%s", "max_members_exceeded"),
			id));
	}
	cr_expect_eq(group_count("dm_members"), 10);
}

struct rush {
	const struct peer *peer;
	const char *events;
	bool whole; /* in one transaction */
	pthread_t thread;
	const char *answer;
};

static void *rush_run(void *arg)
{
	struct rush *rush = arg;
	struct relay_site own = *group_site();
	struct conn *conn = test_db_conn(group_site()->conninfo);

	own.arena = arena_new();
	rush->answer = relay_site_apply(
	    &own, conn, rush->peer, rush->events, !rush->whole);
	conn_free(&conn);
	return own.arena;
}

static void rush_both(struct rush *a, struct rush *b)
{
	pthread_create(&a->thread, NULL, rush_run, a);
	pthread_create(&b->thread, NULL, rush_run, b);
}

static void rush_end(struct rush *rush)
{
	void *arena;

	pthread_join(rush->thread, &arena);
	rush->answer = arena_text(group_site()->arena, rush->answer);
	arena_free((struct arena **)&arena);
}

static const char *adds(const char *host, const char *by, int from, int to)
{
	const char *all = "";

	for (int i = from; i < to; i++)
		all = arena_printf(group_site()->arena, "%s%s%s", all,
		    i > from ? "," : "",
		    told_add(arena_printf(group_site()->arena, "%s%d", host, i),
			arena_printf(group_site()->arena,
			    "{\"homeUserId\":\"%d\",\"homeInstance\":\"%s\"}",
			    i, host),
			by, ""));
	return all;
}

Test(group_relay, two_peers_that_fill_a_group_stop_at_ten)
{
	struct rush a = { .peer = &group_site()->luna };
	struct rush b = { .peer = group_mars() };

	group_begin();
	a.events = adds("luna.test", ZED, 10, 16);
	b.events = adds("mars.test", MIA, 20, 26);
	rush_both(&a, &b);
	rush_end(&a);
	rush_end(&b);
	cr_expect_eq(group_count("dm_members"), 10);
	cr_expect(strstr(a.answer, "max_members_exceeded") ||
	    strstr(b.answer, "max_members_exceeded"));
	cr_expect_eq(group_count("dm_messages"), 7);
	cr_expect_eq(relay_site_number(group_site(),
			 "SELECT c.seq - (SELECT count(*) FROM "
			 "conversation_events) AS "
			 "n FROM dm_channels c"),
	    0);
}

/* The same groups in opposite order: nobody waits in a circle. */
Test(group_relay, opposite_orders_do_not_meet_in_a_deadlock)
{
	for (int i = 0; i < 20; i++) {
		const char *one =
		    arena_printf(group_site()->arena, "one-%d", i);
		const char *two =
		    arena_printf(group_site()->arena, "two-%d", i);
		struct rush a = { .peer = &group_site()->luna, .whole = true };
		struct rush b = { .peer = group_mars(), .whole = true };
		const char *made = arena_printf(group_site()->arena, "%s,%s",
		    told_add_to(one, one, ALICE, ZED, THREE),
		    told_add_to(two, two, ALICE, ZED, THREE));

		from_luna(made);
		a.events = arena_printf(group_site()->arena, "%s,%s",
		    told_add_to("x", one, BOB, ZED, ""),
		    told_add_to("y", two, YAN, ZED, ""));
		b.events = arena_printf(group_site()->arena, "%s,%s",
		    told_add_to("x", two, BOB, MIA, ""),
		    told_add_to("y", one, YAN, MIA, ""));
		rush_both(&a, &b);
		rush_end(&a);
		rush_end(&b);
		cr_expect(
		    !strstr(a.answer, "processing_error"), "%s", a.answer);
		cr_expect(
		    !strstr(b.answer, "processing_error"), "%s", b.answer);
		group_sql("DELETE FROM events_heard");
	}
	cr_expect_eq(group_count("dm_members"), 20 * 2 * 5);
}

/* ---- homeward ---- */

#define DECLARED \
	"UPDATE users SET replicated_instances = '[{\"origin\":" \
	"\"https://luna.test\",\"username\":\"a\"}]' WHERE username = 'alice'"

static const char *sent(void)
{
	return group_text(
	    "SELECT string_agg(p.host || ' ' || o.event_type || ' ' || "
	    "CASE o.event_type WHEN 'profile_update' THEN 'ID' ELSE "
	    "split_part(o.entity_id, ':', 1) END, ', ' ORDER BY o.id) AS t "
	    "FROM "
	    "federation_outbox o JOIN federation_peers p ON p.id = o.peer_id");
}

Test(group_relay, what_ours_do_elsewhere_goes_on_to_the_others_only)
{
	const char *mine = ROSTER(ALICE, ZED "," ALICE "," MIA);
	const char *begin = told_add("g1", ZED, ALICE, mine);

	cr_expect_str_eq(
	    from_luna(begin), REJECTED("g1", "attribution_mismatch"));
	group_sql(DECLARED);
	cr_expect_str_eq(from_luna(begin), ACCEPTED("\"g1\""));
	cr_expect_str_eq(from_luna(begin), ACCEPTED("\"g1\""));
	cr_expect_str_eq(
	    from_luna(told_add("g2", YAN, ALICE, "")), ACCEPTED("\"g2\""));
	cr_expect_str_eq(
	    from_luna(told_transfer("g3", ZED, ALICE)), ACCEPTED("\"g3\""));
	cr_expect_str_eq(from_luna(told_removal("g4", ALICE, ALICE, "leave")),
	    ACCEPTED("\"g4\""));
	cr_expect_str_eq(from_luna(told_removal("g5", MIA, ZED, "kick")),
	    ACCEPTED("\"g5\""));
	cr_expect_str_eq(sent(),
	    "mars.test member_add member_add, "
	    "mars.test profile_update ID, "
	    "mars.test member_add member_add, "
	    "mars.test profile_update ID, "
	    "mars.test ownership_transfer ownership_transfer, "
	    "mars.test member_remove member_remove");
	cr_expect_str_eq(group_members(), "700* 701");
}

/* Groups told by other nodes: who may, what counts once, what goes on. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;
static struct peer mars;
static int64_t tick; /* ms, of the next event */

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	mars = relay_site_peer(&site, "mars.test");
	tick = clock_wall_ms() - 3600 * 1000;
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(group_relay, .init = begin, .fini = end, .timeout = 300);

#define FED "c51b6cfa-15c6-4f7c-ae89-aff88db828e0"
#define FED_2 "31711a36-e398-4e46-901b-7d57adcd28b4"
#define LUNA(id) "{\"homeUserId\":\"" id "\",\"homeInstance\":\"luna.test\"}"
#define ZED LUNA("700")
#define YAN LUNA("701")
#define MIA "{\"homeUserId\":\"300\",\"homeInstance\":\"mars.test\"}"
#define ALICE "{\"homeUserId\":\"$alice\",\"homeInstance\":\"nova.test\"}"
#define BOB "{\"homeUserId\":\"$bob\",\"homeInstance\":\"https://nova.test\"}"

#define ANSWER(accepted, rejected) \
	"{\"accepted\":[" accepted "],\"rejected\":[" rejected \
	"],\"maxUploadSize\":7340032}"
#define ACCEPTED(ids) ANSWER(ids, "")
#define REFUSAL(id, why) "{\"messageId\":\"" id "\",\"reason\":\"" why "\"}"
#define REJECTED(id, why) ANSWER("", REFUSAL(id, why))

/* $alice and $bob are their ids. */
static const char *with_ids(const char *text)
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

static const char *event(
    const char *type, const char *id, const char *group, const char *members)
{
	return with_ids(arena_printf(site.arena,
	    "{\"eventType\":\"%s\",\"contextType\":\"dm\",\"messageId\":\"%s\","
	    "\"encryptionVersion\":0,\"timestamp\":%" PRId64
	    ",\"dmChannelId\":\"9\",\"federatedId\":\"%s\",%s}",
	    type, id, tick += 1000, group, members));
}

static const char *add_to(const char *id, const char *group, const char *who,
    const char *by, const char *roster)
{
	return event("member_add", id, group,
	    arena_printf(site.arena,
		"\"membership\":{\"user\":%s,\"addedBy\":%s}%s", who, by,
		roster));
}

static const char *add(
    const char *id, const char *who, const char *by, const char *roster)
{
	return add_to(id, FED, who, by, roster);
}

#define ROSTER(owner, members) \
	",\"group\":{\"owner\":" owner ",\"members\":[" members "]}"
/* zed's group with alice and mia. */
#define THREE ROSTER(ZED, SITE_ZED "," ALICE "," MIA)

static const char *removal(
    const char *id, const char *who, const char *by, const char *reason)
{
	return event("member_remove", id, FED,
	    arena_printf(site.arena,
		"\"membership\":{\"user\":%s,\"removedBy\":%s,"
		"\"reason\":\"%s\"}",
		who, by, reason));
}

static const char *transfer(const char *id, const char *to, const char *from)
{
	return event("ownership_transfer", id, FED,
	    arena_printf(site.arena,
		"\"ownership\":{\"newOwner\":%s,\"previousOwner\":%s}", to,
		from));
}

static const char *message(const char *id, const char *author)
{
	return event("create", id, FED,
	    arena_printf(site.arena,
		"\"participants\":[%s,%s],\"message\":{\"content\":\"hi\","
		"\"createdAt\":1,%s",
		author, ALICE, author + 1));
}

static const char *luna(const char *events)
{
	return relay_site_send(&site, events);
}

static const char *from_mars(const char *events)
{
	return relay_site_apply(&site, site.conn, &mars, events, false);
}

static int64_t count(const char *what)
{
	return relay_site_number(&site,
	    arena_printf(site.arena, "SELECT count(*) AS n FROM %s", what));
}

static void sql(const char *script)
{
	test_db_script(site.conninfo, script);
}

/* name or home id of the members, the owner with a star. */
static const char *members(void)
{
	return relay_site_text(&site,
	    "SELECT string_agg(coalesce(u.home_user_id, u.username) || CASE "
	    "WHEN c.owner_id = u.id THEN '*' ELSE '' END, ' ' ORDER BY "
	    "coalesce(u.home_user_id, u.username)) AS t FROM dm_channels c "
	    "JOIN dm_members m ON m.dm_channel_id = c.id JOIN users u ON u.id "
	    "= m.user_id WHERE c.is_group");
}

/* What must not change when nothing happens. */
static const char *state(void)
{
	return relay_site_text(&site,
	    "SELECT concat_ws('/', (SELECT string_agg(seq || ' ' || "
	    "(deleted_at IS NULL) || owner_id, ',' ORDER BY id) FROM "
	    "dm_channels), (SELECT count(*) FROM users), (SELECT count(*) "
	    "FROM dm_messages), (SELECT count(*) FROM user_events), (SELECT "
	    "string_agg(dm_channel_id || ' ' || user_id, ',' ORDER BY 1) FROM "
	    "(SELECT * FROM dm_members ORDER BY 1, 2) m), (SELECT "
	    "string_agg(user_id || ' ' || last_read_message_id, ',') FROM "
	    "read_states), (SELECT count(*) FROM federation_outbox)) AS t");
}

static void begin_group(void)
{
	cr_assert_str_eq(
	    luna(add("g0", ALICE, ZED, THREE)), ACCEPTED("\"g0\""));
}

/* ---- beginning ---- */

Test(group_relay, a_roster_begins_a_group)
{
	const char *second = add("g2", MIA, ZED, THREE);
	const char *before;

	cr_expect_str_eq(
	    luna(add("g1", ALICE, ZED, THREE)), ACCEPTED("\"g1\""));
	cr_expect_str_eq(members(), "300 700* alice");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT u.username || ' ' || u.display_name || ' ' || "
		"c.owner_home_user_id || ' ' || c.owner_home_instance AS t "
		"FROM users u JOIN dm_channels c ON c.owner_id = u.id"),
	    "700@luna.test Zed 700 luna.test");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT u.username || ' ' || e.kind AS t FROM user_events e "
		"JOIN users u ON u.id = e.user_id"),
	    "alice channel_joined");
	cr_expect_eq(count("dm_messages"), 0, "no notice of a beginning");
	before = state();
	cr_expect_str_eq(luna(second), ACCEPTED("\"g2\""));
	cr_expect_str_eq(state(), before);
}

Test(group_relay, events_of_one_batch_build_on_each_other)
{
	const char *batch = arena_printf(site.arena, "%s,%s,%s,%s,%s,%s",
	    add("g1", ALICE, ZED, THREE), add("g2", MIA, ZED, THREE),
	    message("m1", ZED), add("g3", YAN, ZED, ""), message("m2", YAN),
	    removal("g4", YAN, YAN, "leave"));

	cr_expect_str_eq(
	    luna(arena_printf(site.arena, "%s,%s", batch, message("m3", YAN))),
	    ANSWER("\"g1\",\"g2\",\"m1\",\"g3\",\"m2\",\"g4\"",
		REFUSAL("m3", "unauthorized_source")));
	cr_expect_str_eq(members(), "300 700* alice");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(kind, ' ' ORDER BY seq) AS t FROM "
		"conversation_events"),
	    "channel_created message_created member_added message_created "
	    "message_created message_created member_removed");
}

Test(group_relay, what_concerns_nobody_here_is_forgotten)
{
	const char *before = state();

	cr_expect_str_eq(luna(add("g1", MIA, ZED, ROSTER(ZED, ZED "," MIA))),
	    ACCEPTED("\"g1\""));
	cr_expect_str_eq(
	    luna(removal("g2", ZED, ZED, "leave")), ACCEPTED("\"g2\""));
	cr_expect_str_eq(luna(transfer("g3", YAN, ZED)), ACCEPTED("\"g3\""));
	cr_expect_str_eq(state(), before);
	cr_expect_eq(count("events_heard"), 0);
	cr_expect_eq(count("users"), 2);
}

Test(group_relay, a_roster_that_may_not_begin_leaves_nothing)
{
	const struct {
		const char *event;
		const char *reason;
	} rows[] = {
		{ add("g", ALICE, ZED, ""), "channel_not_found" },
		{ add("g", ALICE, ZED, ROSTER(LUNA("702"), ALICE)),
		    "unauthorized_source" },
		{ add("g", ALICE, ZED, ROSTER(MIA, MIA "," ZED "," ALICE)),
		    "attribution_mismatch" },
		{ add("g", ALICE, MIA, THREE), "attribution_mismatch" },
		{ add("g", ALICE, BOB, ROSTER(BOB, BOB "," ALICE)),
		    "attribution_mismatch" },
		{ add("g",
		      "{\"homeUserId\":\"5\",\"homeInstance\":"
		      "\"nova.test\"}",
		      ZED, THREE),
		    "participant_not_found" },
		{ add("g", ALICE, ZED,
		      ROSTER(ZED,
			  ALICE
			  "," LUNA("1") "," LUNA("2") "," LUNA("3") "," LUNA("4") "," LUNA("5") "," LUNA(
			      "6") "," LUNA("7") "," LUNA("8") "," LUNA("9") "," ZED)),
		    "max_members_exceeded" },
		{ add("g", ALICE, ZED, ROSTER(ZED, ALICE ",null")),
		    "missing_membership_payload" },
		{ add("g", ALICE, ZED, ROSTER("5", ALICE)),
		    "missing_membership_payload" },
		{ add("g", "{}", ZED, THREE), "missing_membership_payload" },
		{ add("g", ALICE, "null", THREE),
		    "missing_membership_payload" },
		{ add("g", ALICE, "{\"homeInstance\":\"luna.test\"}", THREE),
		    "missing_membership_payload" },
		{ add_to("g", "", ALICE, ZED, THREE),
		    "missing_membership_payload" },
		{ add_to("g", "0123456789abcdef0123456789abcdef", ALICE, ZED,
		      THREE),
		    "missing_membership_payload" },
		{ removal("g", ZED, YAN, "leave"), "unauthorized_source" },
		{ removal("g", ZED, MIA, "kick"), "attribution_mismatch" },
		{ transfer("g", YAN, MIA), "attribution_mismatch" },
		{ transfer("g", "null", ZED), "missing_ownership_payload" },
		{ transfer("g", YAN, "null"), "missing_ownership_payload" },
		{ "{\"eventType\":\"member_add\",\"messageId\":\"g\"}",
		    "missing_membership_payload" },
		{ "{\"eventType\":\"member_remove\",\"messageId\":\"g\"}",
		    "missing_membership_payload" },
		{ "{\"eventType\":\"ownership_transfer\",\"messageId\":"
		  "\"g\"}",
		    "missing_ownership_payload" },
	};
	const char *before = state();

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *answer = luna(rows[i].event);

		cr_expect_str_eq(answer,
		    arena_printf(
			site.arena, REJECTED("g", "%s"), rows[i].reason),
		    "row %zu: %s, wanted %s", i, answer, rows[i].reason);
	}
	cr_expect_str_eq(state(), before);
	cr_expect_eq(count("users"), 2, "nobody was made");
}

Test(group_relay, the_deleted_are_in_no_roster)
{
	sql("INSERT INTO users (username, password_hash, home_instance, "
	    "home_user_id, is_deleted) VALUES ('!deleted:1', 'x', "
	    "'mars.test', '300', true)");
	begin_group();
	cr_expect_str_eq(members(), "700* alice");
	cr_expect_str_eq(luna(add("g1", MIA, ZED, "")),
	    REJECTED("g1", "participant_not_found"));
	cr_expect_str_eq(luna(transfer("g2", MIA, ZED)),
	    REJECTED("g2", "participant_not_found"));
	cr_expect_str_eq(
	    from_mars(removal("g3", MIA, MIA, "leave")), ACCEPTED("\"g3\""));
	cr_expect_str_eq(members(), "700* alice");
	cr_expect_eq(count("users WHERE home_user_id = '300'"), 1);
}

/* ---- joining ---- */

Test(group_relay, only_members_add_and_ten_is_the_limit)
{
	begin_group();
	cr_expect_str_eq(luna(add("g1", BOB, YAN, THREE)),
	    REJECTED("g1", "unauthorized_source"));
	cr_expect_str_eq(
	    from_mars(add("g2", BOB, MIA, "")), ACCEPTED("\"g2\""));
	cr_expect_str_eq(members(), "300 700* alice bob");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT a.home_user_id || ' ' || replace(m.content, "
		"t.id::text, 'bob') AS t FROM dm_messages m JOIN users a ON "
		"a.id = m.user_id JOIN users t ON t.username = 'bob'"),
	    "300 {\"event\":\"member_added\",\"targetUserId\":\"bob\","
	    "\"targetDisplayName\":\"Bob\"}");
	for (int i = 0; i < 7; i++) {
		const char *id = arena_printf(site.arena, "a%d", i);
		const char *who = arena_printf(site.arena,
		    "{\"homeUserId\":\"71%d\",\"homeInstance\":\"luna.test\"}",
		    i);

		cr_expect_str_eq(luna(add(id, who, ZED, "")),
		    arena_printf(site.arena,
			i < 6 ? ACCEPTED("\"%s\"")
			      : REJECTED("%s", "max_members_exceeded"),
			id));
	}
	cr_expect_eq(count("dm_members"), 10);
}

struct rush {
	const struct peer *peer;
	const char *events;
	pthread_t thread;
	const char *answer;
};

static void *rush_run(void *arg)
{
	struct rush *rush = arg;
	struct relay_site own = site;
	struct conn *conn = test_db_conn(site.conninfo);

	own.arena = arena_new();
	rush->answer =
	    relay_site_apply(&own, conn, rush->peer, rush->events, true);
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
	rush->answer = arena_text(site.arena, rush->answer);
	arena_free((struct arena **)&arena);
}

static const char *adds(const char *host, const char *by, int from, int to)
{
	const char *all = "";

	for (int i = from; i < to; i++)
		all = arena_printf(site.arena, "%s%s%s", all,
		    i > from ? "," : "",
		    add(arena_printf(site.arena, "%s%d", host, i),
			arena_printf(site.arena,
			    "{\"homeUserId\":\"%d\",\"homeInstance\":\"%s\"}",
			    i, host),
			by, ""));
	return all;
}

Test(group_relay, two_peers_that_fill_a_group_stop_at_ten)
{
	struct rush a = { .peer = &site.luna };
	struct rush b = { .peer = &mars };

	begin_group();
	a.events = adds("luna.test", ZED, 10, 16);
	b.events = adds("mars.test", MIA, 20, 26);
	rush_both(&a, &b);
	rush_end(&a);
	rush_end(&b);
	cr_expect_eq(count("dm_members"), 10);
	cr_expect(strstr(a.answer, "max_members_exceeded") ||
	    strstr(b.answer, "max_members_exceeded"));
	cr_expect_eq(count("dm_messages"), 7);
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT c.seq - (SELECT count(*) FROM conversation_events) AS "
		"n FROM dm_channels c"),
	    0);
}

/* The same groups in opposite order: nobody waits in a circle. */
Test(group_relay, opposite_orders_do_not_meet_in_a_deadlock)
{
	for (int i = 0; i < 20; i++) {
		const char *one = arena_printf(site.arena, "one-%d", i);
		const char *two = arena_printf(site.arena, "two-%d", i);
		struct rush a = { .peer = &site.luna };
		struct rush b = { .peer = &mars };
		const char *made = arena_printf(site.arena, "%s,%s",
		    add_to(one, one, ALICE, ZED, THREE),
		    add_to(two, two, ALICE, ZED, THREE));

		luna(made);
		a.events = arena_printf(site.arena, "%s,%s",
		    add_to("x", one, BOB, ZED, ""),
		    add_to("y", two, YAN, ZED, ""));
		b.events = arena_printf(site.arena, "%s,%s",
		    add_to("x", two, BOB, MIA, ""),
		    add_to("y", one, YAN, MIA, ""));
		a.events = arena_printf(site.arena, "%s", a.events);
		rush_both(&a, &b);
		rush_end(&a);
		rush_end(&b);
		cr_expect(
		    !strstr(a.answer, "processing_error"), "%s", a.answer);
		cr_expect(
		    !strstr(b.answer, "processing_error"), "%s", b.answer);
		sql("DELETE FROM events_heard");
	}
	cr_expect_eq(count("dm_members"), 20 * 2 * 5);
}

/* ---- what counts once ---- */

Test(group_relay, replays_change_nothing_whatever_came_after)
{
	const char *in = add("g1", BOB, ZED, "");
	const char *out = removal("g2", BOB, ZED, "kick");
	const char *again = add("g3", BOB, ZED, "");
	const char *to_yan;
	const char *back;
	const char *start = add("g0", ALICE, ZED, THREE);
	const char *before;

	luna(start);
	luna(add("g00", YAN, ZED, ""));
	cr_expect_str_eq(luna(in), ACCEPTED("\"g1\""));
	cr_expect_str_eq(luna(out), ACCEPTED("\"g2\""));
	cr_expect_str_eq(luna(again), ACCEPTED("\"g3\""));
	to_yan = transfer("g4", YAN, ZED);
	back = transfer("g5", ZED, YAN);
	cr_expect_str_eq(luna(to_yan), ACCEPTED("\"g4\""));
	cr_expect_str_eq(luna(back), ACCEPTED("\"g5\""));
	sql("INSERT INTO read_states SELECT m.user_id, m.dm_channel_id, "
	    "(SELECT max(id) FROM dm_messages) FROM dm_members m");
	cr_expect_str_eq(members(), "300 700* 701 alice bob");
	cr_expect_eq(count("dm_messages"), 6, "a notice each");
	before = state();
	for (int i = 0; i < 5; i++) {
		const char *const all[] = { start, in, out, again, to_yan,
			back };

		for (size_t j = 0; j < COUNT(all); j++) {
			luna(all[j]);
			relay_site_apply(
			    &site, site.conn, &site.luna, all[j], true);
		}
	}
	cr_expect_str_eq(state(), before);
}

Test(group_relay, an_addition_from_before_brings_nobody_back)
{
	const char *late = add("g1", MIA, ZED, "");
	const char *leave = removal("g2", MIA, MIA, "leave");

	luna(add("g0", ALICE, ZED, ROSTER(ZED, ZED "," ALICE)));
	/* mars is known by name only: its person has a row from elsewhere. */
	sql("INSERT INTO users (username, password_hash, home_instance, "
	    "home_user_id) VALUES ('300@mars.test', '!federation-replicated', "
	    "'mars.test', '300')");
	cr_expect_str_eq(from_mars(leave), ACCEPTED("\"g2\""));
	cr_expect_str_eq(luna(late), ACCEPTED("\"g1\""));
	cr_expect_str_eq(members(), "700* alice");
	cr_expect_str_eq(luna(add("g3", MIA, ZED, "")), ACCEPTED("\"g3\""));
	cr_expect_str_eq(members(), "300 700* alice");
}

/* ---- leaving, removing, owning ---- */

Test(group_relay, only_the_owner_removes_others)
{
	begin_group();
	cr_expect_str_eq(from_mars(removal("g1", ALICE, MIA, "kick")),
	    REJECTED("g1", "unauthorized_source"));
	cr_expect_str_eq(luna(removal("g2", ALICE, YAN, "kick")),
	    REJECTED("g2", "unauthorized_source"));
	cr_expect_str_eq(luna(removal("g3", ALICE, MIA, "kick")),
	    REJECTED("g3", "attribution_mismatch"));
	cr_expect_str_eq(members(), "300 700* alice");
	cr_expect_str_eq(luna(removal("g4", LUNA("nobody"), ZED, "kick")),
	    ACCEPTED("\"g4\""));
	cr_expect_str_eq(
	    luna(removal("g5", ALICE, ZED, "kick")), ACCEPTED("\"g5\""));
	cr_expect_str_eq(members(), "300 700*");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(kind, ' ' ORDER BY seq) AS t FROM "
		"user_events"),
	    "channel_joined channel_left");
	cr_expect_eq(count("dm_messages WHERE content LIKE "
			   "'%\"reason\":\"kick\"}'"),
	    1);
}

/* Known fault: owner's home stored in one spelling, told in another. */
Test(group_relay, a_group_that_moves_between_nodes_obeys_each_owner)
{
	static const char *const spellings[] = { "luna.test",
		"https://luna.test", "https://LUNA.test:443/" };

	for (size_t i = 0; i < COUNT(spellings); i++) {
		const char *zed = arena_printf(site.arena,
		    "{\"homeUserId\":\"700\",\"homeInstance\":\"%s\"}",
		    spellings[i]);
		const char *n = arena_printf(site.arena, "%zu", i);

		sql("DELETE FROM dm_channels; DELETE FROM events_heard");
		luna(add(n, ALICE, ZED,
		    ROSTER(ZED, ALICE "," ZED "," YAN "," MIA "," BOB)));
		/* Both spellings, preset by hand. */
		sql(arena_printf(site.arena,
		    "UPDATE dm_channels SET owner_home_instance = '%s'",
		    spellings[i]));
		cr_expect(
		    strstr(luna(removal("k1", YAN, zed, "kick")), "[\"k1"));
		cr_expect(strstr(luna(transfer("t1", MIA, zed)), "[\"t1"));
		cr_expect(strstr(
		    luna(removal("k2", BOB, zed, "kick")), "unauthorized"));
		cr_expect(strstr(
		    from_mars(removal("k3", BOB, MIA, "kick")), "[\"k3"));
		cr_expect(strstr(from_mars(transfer("t2", zed, MIA)), "[\"t2"));
		cr_expect(strstr(luna(transfer("t3", MIA, zed)), "[\"t3"));
		cr_expect_str_eq(members(), "300* 700 alice");
	}
}

Test(group_relay, no_owner_is_ever_nobody)
{
	begin_group();
	sql("INSERT INTO users (username, password_hash, home_instance, "
	    "home_user_id, is_deleted) VALUES ('!deleted:1', 'x', "
	    "'luna.test', '9', true)");
	cr_expect_str_eq(luna(transfer("g1", LUNA("8"), ZED)),
	    REJECTED("g1", "unauthorized_source"));
	cr_expect_str_eq(luna(transfer("g2", LUNA("9"), ZED)),
	    REJECTED("g2", "participant_not_found"));
	cr_expect_str_eq(luna(transfer("g3", BOB, ZED)),
	    REJECTED("g3", "unauthorized_source"));
	cr_expect_str_eq(from_mars(transfer("g4", MIA, MIA)),
	    REJECTED("g4", "unauthorized_source"));
	cr_expect_str_eq(members(), "300 700* alice");
	cr_expect_str_eq(luna(transfer("g5", ALICE, ZED)), ACCEPTED("\"g5\""));
	cr_expect_str_eq(members(), "300 700 alice*");
	cr_expect_eq(
	    count("dm_channels WHERE is_group AND owner_id IS NULL"), 0);
}

Test(group_relay, an_owner_leaves_and_passes_it_on)
{
	begin_group();
	cr_expect_str_eq(
	    luna(arena_printf(site.arena, "%s,%s",
		removal("g1", ZED, ZED, "leave"), transfer("g2", ALICE, ZED))),
	    ACCEPTED("\"g1\",\"g2\""));
	cr_expect_str_eq(members(), "300 alice*");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(kind, ' ' ORDER BY seq) AS t FROM "
		"conversation_events"),
	    "channel_created message_created member_removed owner_changed "
	    "message_created");
}

/* ---- nobody of ours, nobody at all ---- */

Test(group_relay, an_addition_cancels_the_deletion)
{
	begin_group();
	luna(removal("g1", ALICE, ZED, "kick"));
	from_mars(removal("g2", MIA, MIA, "leave"));
	luna(removal("g3", ZED, ZED, "leave"));
	cr_expect_eq(count("dm_channels WHERE deleted_at IS NOT NULL"), 1);
	cr_expect_str_eq(
	    luna(message("m1", ZED)), REJECTED("m1", "channel_not_found"));
	cr_expect_str_eq(
	    luna(add("g4", ALICE, ZED, THREE)), ACCEPTED("\"g4\""));
	cr_expect_eq(count("dm_channels WHERE deleted_at IS NOT NULL"), 0);
	cr_expect_str_eq(members(), "300 700* alice");
	cr_expect_str_eq(luna(message("m2", ZED)), ACCEPTED("\"m2\""));
}

Test(group_relay, who_comes_back_finds_the_group_as_it_is_now)
{
	const char *back;

	begin_group();
	luna(removal("g1", ALICE, ZED, "kick"));
	/* Meanwhile, without us: mia has gone, yan has come and owns it. */
	back = add("g2", ALICE, YAN, ROSTER(YAN, ZED "," YAN "," ALICE));
	cr_expect_str_eq(luna(back), ACCEPTED("\"g2\""));
	cr_expect_str_eq(members(), "700 701* alice");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT kind AS t FROM user_events ORDER BY seq DESC LIMIT 1"),
	    "channel_joined");
}

Test(group_relay, a_node_without_a_part_renews_nothing)
{
	struct peer evil = relay_site_peer(&site, "evil.test");
	const char *eve =
	    "{\"homeUserId\":\"1\",\"homeInstance\":\"evil.test\"}";
	const char *before;

	begin_group();
	luna(removal("g1", ALICE, ZED, "kick"));
	before = state();
	cr_expect_str_eq(
	    relay_site_apply(&site, site.conn, &evil,
		add("g2", BOB, eve,
		    with_ids(arena_printf(site.arena,
			",\"group\":{\"owner\":%s,\"members\":[%s,%s]}", eve,
			eve, BOB))),
		false),
	    REJECTED("g2", "unauthorized_source"));
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT count(*) FILTER (WHERE home_instance = 'evil.test')::"
		"text AS t FROM users"),
	    "1", "a row without any right");
	cr_expect_str_eq(members(), "300 700*");
	cr_expect_str_neq(before, "");
}

/* ---- homeward ---- */

#define DECLARED \
	"UPDATE users SET replicated_instances = '[{\"origin\":" \
	"\"https://luna.test\",\"username\":\"a\"}]' WHERE username = 'alice'"

static const char *sent(void)
{
	return relay_site_text(&site,
	    "SELECT string_agg(p.host || ' ' || o.event_type || ' ' || "
	    "split_part(o.entity_id, ':', 1), ', ' ORDER BY o.id) AS t FROM "
	    "federation_outbox o JOIN federation_peers p ON p.id = o.peer_id");
}

Test(group_relay, what_ours_do_elsewhere_goes_on_to_the_others_only)
{
	const char *mine = ROSTER(ALICE, ZED "," ALICE "," MIA);
	const char *begin = add("g1", ZED, ALICE, mine);

	cr_expect_str_eq(luna(begin), REJECTED("g1", "attribution_mismatch"));
	sql(DECLARED);
	cr_expect_str_eq(luna(begin), ACCEPTED("\"g1\""));
	cr_expect_str_eq(luna(begin), ACCEPTED("\"g1\""));
	cr_expect_str_eq(luna(add("g2", YAN, ALICE, "")), ACCEPTED("\"g2\""));
	cr_expect_str_eq(luna(transfer("g3", ZED, ALICE)), ACCEPTED("\"g3\""));
	cr_expect_str_eq(
	    luna(removal("g4", ALICE, ALICE, "leave")), ACCEPTED("\"g4\""));
	cr_expect_str_eq(
	    luna(removal("g5", MIA, ZED, "kick")), ACCEPTED("\"g5\""));
	cr_expect_str_eq(sent(),
	    "mars.test member_add member_add, "
	    "mars.test member_add member_add, "
	    "mars.test ownership_transfer ownership_transfer, "
	    "mars.test member_remove member_remove");
	cr_expect_str_eq(members(), "700* 701");
}

/*
 * Whoever is ours acts from another node only where he has declared an
 * account; whoever is somebody else's acts from his own. Of every type.
 */
#include <criterion/criterion.h>

#include "common/federation/relay.h"
#include "tests/integration/group_site.h"
#include "tests/lib/test_forged.h"

TestSuite(forged_acts, .init = group_site_begin, .fini = group_site_end,
    .timeout = 300);

#define FORGED_STATE \
	"SELECT concat_ws(' ', (SELECT md5(string_agg(to_jsonb(u)::text, ',' " \
	"ORDER BY id)) FROM users u), (SELECT md5(string_agg(to_jsonb(c)::" \
	"text, ',' ORDER BY id)) FROM dm_channels c), (SELECT md5(string_agg(" \
	"m::text, ',' ORDER BY m::text)) FROM dm_members m), (SELECT " \
	"md5(string_agg(to_jsonb(m)::text, ',' ORDER BY id)) FROM " \
	"dm_messages " \
	"m), (SELECT count(*) FROM dm_reactions), (SELECT count(*) FROM " \
	"reaction_tombstones), (SELECT count(*) FROM read_states), (SELECT " \
	"count(*) FROM friends), (SELECT count(*) FROM friend_requests), " \
	"(SELECT count(*) FROM conversation_events), (SELECT count(*) FROM " \
	"user_events), (SELECT count(*) FROM federation_outbox), (SELECT " \
	"count(*) FROM events_heard), (SELECT count(*) FROM dm_departures), " \
	"(SELECT count(*) FROM message_tombstones)) AS t"

/* zed's group, his message m1 in it, a message of alice in it. */
static const char *ours_begin(void)
{
	group_begin();
	cr_assert_str_eq(
	    from_luna(told_message("m1", ZED)), ACCEPTED("\"m1\""));
	group_sql("INSERT INTO dm_messages (dm_channel_id, user_id, content) "
		  "SELECT c.id, u.id, 'of alice' FROM dm_channels c, users u "
		  "WHERE c.is_group AND u.username = 'alice'");
	group_sql("INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id "
		  "FROM users a, users b WHERE b.home_user_id = '700' AND "
		  "a.username = 'alice'");
	return group_text("SELECT id::text AS t FROM dm_messages WHERE "
			  "content = 'of alice'");
}

/* Of each type, told by mars: who acts, about whose message. */
static void expect_nothing(const char *who, const char *friend,
    const char *about, const char *about_instance)
{
	const struct forgery forgery = {
		.who = with_ids(who),
		.whom = with_ids(
		    "\"homeUserId\":\"$bob\",\"homeInstance\":\"nova.test\""),
		.friend = with_ids(friend),
		.about = about,
		.about_instance = about_instance,
		.place = FED,
	};
	const char *before = group_text(FORGED_STATE);
	const struct event_type *type;

	for (size_t i = 0; (type = event_type_at(i)); i++) {
		const char *answer = from_mars(
		    forged_event(group_site()->arena, type, &forgery));

		cr_expect(strstr(answer, "\"accepted\":[],"), "%s: %s",
		    type->name, answer);
		cr_expect_str_eq(
		    group_text(FORGED_STATE), before, "%s", type->name);
	}
}

#define ID_OF_ALICE \
	"\"homeUserId\":\"$alice\",\"homeInstance\":\"https://nova.test\""
#define ID_OF_ZED "\"homeUserId\":\"700\",\"homeInstance\":\"luna.test\""

Test(forged_acts, ours_do_nothing_where_they_have_no_account)
{
	const char *own = ours_begin();

	expect_nothing(ID_OF_ALICE, ID_OF_ZED, own, "https://nova.test");
}

Test(forged_acts, nobody_acts_for_a_third_node)
{
	ours_begin();
	expect_nothing(ID_OF_ZED, ID_OF_ALICE, "m1", "https://luna.test");
}

/* Profiles as their homes tell them, and as others forge them. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;

static void site_begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	relay_site_send(&site, relay_site_create(&site, "m", "hello"));
	test_db_script(site.conninfo, "DELETE FROM user_events");
}

static void site_end(void)
{
	relay_site_end(&site);
}

TestSuite(profile_relay, .init = site_begin, .fini = site_end, .timeout = 300);

static const char *said(
    const char *person, const char *home, int64_t at, const char *fields)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"profile_update\",\"contextType\":\"profile\","
	    "\"messageId\":\"%s\",\"profileUpdate\":{\"homeUserId\":\"%s\","
	    "\"homeInstance\":\"%s\",\"profileUpdatedAt\":%" PRId64 "%s}}",
	    person, person, home, at, fields);
}

static const char *zed(void)
{
	return relay_site_text(&site,
	    "SELECT concat_ws('|', coalesce(display_name, '-'),"
	    " coalesce(avatar, '-'), coalesce(banner, '-'),"
	    " coalesce(accent_color, '-'), coalesce(avatar_color, '-'),"
	    " coalesce(bio, '-')) AS t FROM users WHERE home_user_id = '700'");
}

static void expect(const char *events, const char *part)
{
	const char *answer = relay_site_send(&site, events);

	cr_expect(strstr(answer, part), "%s: %s", events, answer);
}

Test(profile_relay, the_newest_profile_replaces_all_six_fields)
{
	int64_t now = clock_wall_ms();

	expect(said("700", "https://luna.test", now - 5,
		   ",\"displayName\":\"Zed II\",\"avatar\":\"https://luna.test/"
		   "api/uploads/q.png\",\"banner\":\"r.png\","
		   "\"accentColor\":\"#AaBbCc\",\"avatarColor\":\"coral\","
		   "\"bio\":\"hey\""),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(),
	    "Zed II|https://luna.test/api/uploads/q.png|"
	    "https://luna.test/api/uploads/r.png|#AaBbCc|coral|hey");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(u.username || ' ' || kind, ',') AS t"
		" FROM user_events e JOIN users u ON u.id = e.user_id"),
	    "alice user_updated");
	expect(said("700", "luna.test", now - 5, ",\"displayName\":\"stale\""),
	    "\"accepted\":[\"700\"]");
	expect(said("700", "luna.test", now - 9, ",\"displayName\":\"stale\""),
	    "\"accepted\":[\"700\"]");
	cr_expect(strstr(zed(), "Zed II"));
	expect(said("700", "luna.test", now,
		   ",\"displayName\":null,\"avatar\":null,\"banner\":null,"
		   "\"accentColor\":null,\"avatarColor\":null,\"bio\":null"),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(), "-|-|-|-|-|-");
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM user_events"),
	    2);
}

Test(profile_relay, only_the_home_speaks_for_its_people)
{
	int64_t now = clock_wall_ms();

	expect(said(arena_printf(site.arena, "%" PRId64, site.alice),
		   "nova.test", now, ",\"displayName\":\"forged\""),
	    "attribution_mismatch");
	expect(said("700", "evil.test", now, ",\"displayName\":\"forged\""),
	    "attribution_mismatch");
	expect(said("700", "luna.test:8443", now, ""), "attribution_mismatch");
	/* Even where alice has an account there. */
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]'"
	    " WHERE username = 'alice'");
	expect(said(arena_printf(site.arena, "%" PRId64, site.alice),
		   "nova.test", now, ",\"displayName\":\"forged\""),
	    "attribution_mismatch");
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM users"
			 " WHERE display_name = 'forged'"),
	    0);
}

Test(profile_relay, who_is_not_here_leaves_nothing)
{
	int64_t now = clock_wall_ms();

	expect(said("12345", "luna.test", now, ",\"displayName\":\"nobody\""),
	    "\"accepted\":[\"12345\"]");
	test_db_script(site.conninfo,
	    "UPDATE users SET is_deleted = true, display_name = NULL,"
	    " avatar = NULL, avatar_color = NULL WHERE home_user_id = '700'");
	expect(said("700", "luna.test", now, ",\"displayName\":\"back\""),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(), "-|-|-|-|-|-");
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM users"), 3);
}

static const char *const bad_profiles[] = {
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\"}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":7}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"profileUpdatedAt\":1}}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"homeUserId\":\"700\"}}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"homeUserId\":\"700\",\"profileUpdatedAt\":1,\"bio\":7}}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"homeUserId\":\"700\",\"profileUpdatedAt\":1,"
	"\"displayName\":\"a\\u0000\"}}",
};

Test(profile_relay, payloads_that_say_nothing_are_refused)
{
	for (size_t i = 0; i < COUNT(bad_profiles); i++)
		expect(bad_profiles[i],
		    "\"reason\":\"missing_profile_update_payload\"");
	cr_expect(strstr(zed(), "Zed|"));
}

/* A name is shown without what only deceives the eye, and cut to what we
 * keep; what belongs to the writing stays. */
Test(profile_relay, names_lose_what_nobody_sees)
{
	static const struct {
		const char *said, *kept;
	} names[] = {
		{ "\\u202ealice\\u202c", "alice" },
		{ "al\\u200bi\\ufeffce\\u2060", "alice" },
		{ "\\u2066bob\\u2069\\u061c", "bob" },
		{ "al\\u200dice", "alice" },
		{ "\\ud83d\\udc69\\u200d\\ud83d\\ude80",
		    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80" },
		{ "\\u0430lice", "\xd0\xb0lice" },
		{ "a\\u0007b\\u0085c", "abc" },
		{ "  spaced  ", "spaced" },
		{ "\\u200b\\u200e", "-" },
		{ "1234567890123456789012345678901\\ud83d\\ude80",
		    "1234567890123456789012345678901" },
	};
	int64_t now = clock_wall_ms();

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *fields = arena_printf(
		    site.arena, ",\"displayName\":\"%s\"", names[i].said);

		expect(said("700", "luna.test", now - 100 + (int64_t)i, fields),
		    "\"accepted\":[\"700\"]");
		cr_expect_str_eq(zed(),
		    arena_printf(site.arena, "%s|-|-|-|-|-", names[i].kept));
	}
}

Test(profile_relay, what_we_would_not_take_from_our_own_is_none)
{
	expect(said("700", "luna.test", clock_wall_ms(),
		   ",\"displayName\":\"Z\",\"avatar\":\"../x\","
		   "\"banner\":\"javascript:x\",\"accentColor\":\"red\","
		   "\"avatarColor\":\"crimson\""),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(), "Z|-|-|-|-|-");
}

Test(profile_relay, a_version_from_the_far_future_does_not_stay_for_ever)
{
	expect(said("700", "luna.test", INT64_C(4070908800000),
		   ",\"displayName\":\"2099\""),
	    "\"accepted\":[\"700\"]");
	expect(said("700", "luna.test", clock_wall_ms() + 1000,
		   ",\"displayName\":\"now\""),
	    "\"accepted\":[\"700\"]");
	cr_expect(strstr(zed(), "now|"));
}

Test(profile_relay, several_in_a_batch_about_one_person_the_newest_counts)
{
	int64_t now = clock_wall_ms();

	expect(arena_printf(site.arena, "%s,%s,%s",
		   said("700", "luna.test", now - 2, ",\"bio\":\"two\""),
		   said("700", "luna.test", now - 1, ",\"bio\":\"one\""),
		   said("700", "luna.test", now - 3, ",\"bio\":\"three\"")),
	    "\"rejected\":[]");
	cr_expect(strstr(zed(), "|one"));
}

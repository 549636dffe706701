/* Broken rows that older servers and imports leave, and what ops.repair() does
 * about them: twice, since the second time nothing may change. */
#include <criterion/criterion.h>

#include "tests/integration/sync_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;

static void sql(const char *script)
{
	test_db_script(site.conninfo, script);
}

/* As an import without our constraints would have left it. */
static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	sql("DO $$ DECLARE c record; BEGIN FOR c IN SELECT conname FROM "
	    "pg_constraint WHERE conrelid = 'dm_channels'::regclass AND "
	    "contype = 'c' LOOP EXECUTE format('ALTER TABLE dm_channels DROP "
	    "CONSTRAINT %I', c.conname); END LOOP; END $$;"
	    "ALTER TABLE users DROP CONSTRAINT users_home_instance_check");
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(repair, .init = begin, .fini = end, .timeout = 300);

/* Everything the repairs may touch, as one text. */
static const char *state(void)
{
	return relay_site_text(&site,
	    "SELECT concat_ws('|',"
	    " (SELECT string_agg(u::text, ';' ORDER BY id) FROM users u),"
	    " (SELECT string_agg(c::text, ';' ORDER BY id) FROM dm_channels c),"
	    " (SELECT string_agg(m::text, ';' ORDER BY id) FROM dm_messages m),"
	    " (SELECT string_agg(m::text, ';' ORDER BY m) FROM dm_members m),"
	    " (SELECT string_agg(r::text, ';' ORDER BY r) FROM read_states r),"
	    " (SELECT string_agg(e::text, ';' ORDER BY e)"
	    "    FROM conversation_events e),"
	    " (SELECT string_agg(l::text, ';' ORDER BY id)"
	    "    FROM federation_mutation_log l),"
	    " (SELECT count(*) FROM audit)) AS t");
}

/* "repair target outcome" a line; run twice, the conflicts stay. */
static const char *repaired(void)
{
	static const char run[] =
	    "SELECT coalesce(string_agg(repair || ' ' || target || ' ' || "
	    "outcome, ', '), 'nothing') AS t FROM ops.repair()";
	static const char again[] =
	    "SELECT coalesce(string_agg(repair || ' ' || target || ' ' || "
	    "outcome, ', '), 'nothing') AS t FROM ops.repair() "
	    "WHERE outcome <> 'conflict'";
	const char *first = relay_site_text(&site, run);
	const char *after = state();

	cr_expect_str_eq(relay_site_text(&site, again), "nothing");
	cr_expect_str_eq(state(), after);
	return first;
}

static int64_t number(const char *query)
{
	return relay_site_number(&site, query);
}

static const char *text(const char *query)
{
	return relay_site_text(&site, query);
}

static int64_t zed(void)
{
	return sync_site_person(&site, "luna.test", "700");
}

static const char *uuid = "05d1f2b3-6ca2-4bd0-8641-a07555981695";

/* ---- the owner of a group ---- */

Test(repair, a_sound_node_is_left_alone)
{
	int64_t pair = sync_site_pair(&site, site.alice, zed());

	sync_site_say(&site, pair, site.alice, "hello");
	sync_site_say(&site, sync_site_pair(&site, site.alice, site.bob),
	    site.bob, "hello");
	cr_expect_str_eq(repaired(), "nothing");
	cr_expect_eq(number("SELECT count(*) AS n FROM audit"), 0);
}

Test(repair, a_group_gets_back_the_owner_it_remembers)
{
	int64_t kim = zed();
	int64_t group = sync_site_group(&site, uuid, site.alice,
	    arena_printf(site.arena, "%" PRId64 ", %" PRId64 ", %" PRId64,
		site.alice, site.bob, kim));

	sql("UPDATE dm_channels SET owner_id = NULL, owner_home_user_id = "
	    "'700', owner_home_instance = 'luna.test'");
	cr_expect_str_eq(repaired(),
	    arena_printf(site.arena, "owner %" PRId64 " repaired", group));
	cr_expect_eq(number("SELECT owner_id AS n FROM dm_channels"), kim);
	cr_expect_str_eq(text("SELECT action || ' ' || rows AS t FROM audit"),
	    "repair_owner 1");
}

Test(repair, or_the_first_of_its_members)
{
	/* Also when it had turned into a pair by losing its owner; the one it
	 * remembers has left, and her number at another node is not her. */
	int64_t group = sync_site_group(&site, uuid, site.alice,
	    arena_printf(site.arena, "%" PRId64 ", %" PRId64, site.bob, zed()));

	sql(arena_printf(site.arena,
	    "UPDATE dm_channels SET is_group = false, owner_id = NULL, "
	    "owner_home_user_id = '%" PRId64 "', owner_home_instance = NULL",
	    site.alice));
	cr_expect_str_eq(repaired(),
	    arena_printf(site.arena, "owner %" PRId64 " repaired", group));
	cr_expect_eq(number("SELECT owner_id AS n FROM dm_channels"), site.bob);
	cr_expect_eq(number("SELECT is_group::int::bigint AS n "
			    "FROM dm_channels"),
	    1);
}

Test(repair, an_empty_group_is_nobodys)
{
	int64_t group = sync_site_group(&site, uuid, site.alice,
	    arena_printf(site.arena, "%" PRId64, site.alice));

	sql("UPDATE dm_channels SET owner_id = NULL;"
	    "UPDATE users SET is_deleted = true WHERE username = 'alice'");
	cr_expect_str_eq(repaired(),
	    arena_printf(site.arena, "owner %" PRId64 " conflict", group));
}

/* ---- federated ids ---- */

Test(repair, a_pair_gets_the_id_that_both_sides_compute)
{
	int64_t pair = sync_site_pair(&site, site.alice, zed());
	const char *right = text("SELECT federated_id AS t FROM dm_channels");

	sync_site_pair(&site, site.alice, site.bob);
	sql("UPDATE dm_channels SET federated_id = NULL");
	cr_expect_str_eq(repaired(),
	    arena_printf(
		site.arena, "federated_id %" PRId64 " repaired", pair));
	cr_expect_str_eq(text("SELECT string_agg(federated_id, ' ') AS t "
			      "FROM dm_channels"),
	    right);
}

Test(repair, an_id_that_is_there_is_never_overwritten)
{
	int64_t pair = sync_site_pair(&site, site.alice, zed());
	int64_t other = sync_site_pair(
	    &site, site.bob, sync_site_person(&site, "luna.test", "701"));

	sql("UPDATE dm_channels SET federated_id = "
	    "'00000000000000000000000000000000';"
	    "UPDATE users SET home_user_id = NULL WHERE home_user_id = '701'");
	cr_expect_str_eq(repaired(),
	    arena_printf(
		site.arena, "federated_id %" PRId64 " conflict", pair));
	sql("UPDATE dm_channels SET federated_id = NULL "
	    "WHERE federated_id LIKE '000%'");
	cr_expect_str_eq(repaired(),
	    arena_printf(site.arena,
		"federated_id %" PRId64 " repaired, federated_id %" PRId64
		" conflict",
		pair, other));
}

/* ---- a pair twice ---- */

static int64_t twin(int64_t a, int64_t b, const char *columns)
{
	int64_t low = a < b ? a : b;
	int64_t high = a < b ? b : a;
	int64_t id;

	sql("DROP INDEX IF EXISTS dm_channels_pair");
	sql(arena_printf(site.arena,
	    "INSERT INTO dm_channels (pair_low, pair_high, created_at) VALUES "
	    "(%s, now() + interval '1 hour')",
	    columns ? columns
		    : arena_printf(
			  site.arena, "%" PRId64 ", %" PRId64, low, high)));
	id = number("SELECT max(id) AS n FROM dm_channels");
	sql(arena_printf(site.arena,
	    "INSERT INTO dm_members VALUES (%" PRId64 ", %" PRId64
	    "), (%" PRId64 ", %" PRId64 ")",
	    id, low, id, high));
	return id;
}

static void check_merged(
    int64_t kept, int64_t gone, int64_t first, int64_t second)
{
	cr_expect_str_eq(repaired(),
	    arena_printf(
		site.arena, "duplicate_channel %" PRId64 " repaired", gone));
	cr_expect_eq(number("SELECT id AS n FROM dm_channels"), kept);
	cr_expect_str_eq(
	    text(arena_printf(site.arena,
		"SELECT string_agg(id::text, ' ' ORDER BY created_at, id) AS t "
		"FROM dm_messages WHERE dm_channel_id = %" PRId64,
		kept)),
	    arena_printf(site.arena, "%" PRId64 " %" PRId64, first, second));
	/* Clients hear of what was moved: the line has no gap. */
	cr_expect_eq(number(arena_printf(site.arena,
			 "SELECT count(*) AS n FROM conversation_events e JOIN "
			 "dm_channels c ON c.id = e.conversation_id AND e.seq "
			 "BETWEEN 1 AND c.seq WHERE e.conversation_id = "
			 "%" PRId64,
			 kept)),
	    number("SELECT seq AS n FROM dm_channels"));
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_members"), 2);
}

static void twins(const char *columns)
{
	int64_t other = zed();
	int64_t kept = sync_site_pair(&site, site.alice, other);
	struct message first = sync_site_say(&site, kept, site.alice, "one");
	int64_t gone = twin(site.alice, other, columns);
	struct message second = sync_site_say(&site, gone, site.alice, "two");

	sql(arena_printf(site.arena,
	    "UPDATE dm_members SET closed = true WHERE dm_channel_id = "
	    "%" PRId64 ";"
	    "INSERT INTO read_states (user_id, channel_id, "
	    "last_read_message_id) VALUES (%" PRId64 ", %" PRId64 ", %" PRId64
	    "), (%" PRId64 ", %" PRId64 ", %" PRId64 ")",
	    kept, site.alice, kept, first.id, site.alice, gone, second.id));
	check_merged(kept, gone, first.id, second.id);
	cr_expect_eq(number("SELECT last_read_message_id AS n "
			    "FROM read_states"),
	    second.id);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_members "
			    "WHERE closed"),
	    0);
	/* And whoever asks later finds both there. */
	cr_expect_eq(number(arena_printf(site.arena,
			 "SELECT count(*) AS n FROM federation_mutation_log "
			 "WHERE context_id = '%" PRId64 "'",
			 kept)),
	    2);
}

Test(repair, a_pair_twice_becomes_its_oldest_conversation)
{
	twins(NULL);
}

Test(repair, also_when_one_has_lost_the_names_of_its_people)
{
	twins("NULL, NULL");
}

Test(repair, equal_ids_of_other_people_are_no_duplicates)
{
	/* Two 700s, one id: two people, two conversations. */
	sync_site_pair(&site, site.alice, zed());
	sync_site_pair(
	    &site, site.alice, sync_site_person(&site, "orbit.test", "700"));
	cr_expect_str_eq(repaired(), "nothing");
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_channels"), 2);
	cr_expect_eq(number("SELECT count(DISTINCT federated_id) AS n "
			    "FROM dm_channels"),
	    1);
}

Test(repair, what_may_have_been_a_group_is_not_guessed)
{
	int64_t three = twin(site.alice, zed(), "NULL, NULL");
	int64_t two = twin(site.alice, site.bob, "NULL, NULL");

	sql(arena_printf(site.arena,
	    "INSERT INTO dm_members VALUES (%" PRId64 ", %" PRId64 ");"
	    "UPDATE dm_channels SET owner_home_user_id = '9' WHERE id = "
	    "%" PRId64,
	    three, site.bob, two));
	cr_expect_str_eq(repaired(),
	    arena_printf(site.arena,
		"duplicate_channel %" PRId64 " conflict, duplicate_channel "
		"%" PRId64 " conflict",
		three, two));
}

Test(repair, groups_of_one_id_are_reported)
{
	const char *all = arena_printf(
	    site.arena, "%" PRId64 ", %" PRId64, site.alice, zed());
	int64_t one = sync_site_group(&site, uuid, site.alice, all);
	int64_t two;

	sql("UPDATE dm_channels SET created_at = now() - interval '1 day'");
	sync_site_group(&site, "other", site.alice, all);
	two = number("SELECT max(id) AS n FROM dm_channels");
	sql("DROP INDEX dm_channels_group");
	sql(arena_printf(
	    site.arena, "UPDATE dm_channels SET federated_id = '%s'", uuid));
	cr_expect_str_eq(repaired(),
	    arena_printf(site.arena,
		"duplicate_channel %" PRId64 " %" PRId64 " conflict", one,
		two));
}

/* ---- homes ---- */

Test(repair, homes_are_hosts)
{
	int64_t url = sync_site_person(&site, "https://Luna.test:443", "1");
	int64_t twice = sync_site_person(&site, "https://luna.test", "700");
	int64_t odd = sync_site_person(&site, "not a host", "2");

	zed();
	cr_expect_str_eq(repaired(),
	    arena_printf(site.arena,
		"home_instance %" PRId64 " repaired, home_instance %" PRId64
		" conflict, home_instance %" PRId64 " conflict",
		url, twice, odd));
	cr_expect_str_eq(
	    text(arena_printf(site.arena,
		"SELECT home_instance AS t FROM users WHERE id = %" PRId64,
		url)),
	    "luna.test");
	cr_expect_eq(number("SELECT count(*) AS n FROM users WHERE "
			    "home_user_id = '700'"),
	    2, "nobody is merged");
}

/* ---- the log ---- */

Test(repair, messages_without_a_row_in_the_log_get_one)
{
	int64_t other = zed();
	int64_t pair = sync_site_pair(&site, site.alice, other);
	struct message mine = sync_site_say(&site, pair, site.alice, "mine");
	struct message old = sync_site_say(&site, pair, site.alice, "old");
	struct message account = sync_site_say(&site, pair, other, "from here");
	const char *before;

	relay_site_send(&site, relay_site_create(&site, "m1", "theirs"));
	before = text("SELECT string_agg(concat_ws(' ', entity_id, hosts, "
		      "except_host, homeward), ', ' ORDER BY entity_id) AS t "
		      "FROM federation_mutation_log WHERE entity_id NOT IN "
		      "(SELECT id::text FROM dm_messages WHERE content = "
		      "'old')");
	sql("DELETE FROM federation_mutation_log;"
	    "UPDATE dm_messages SET created_at = now() - interval '91 days' "
	    "WHERE content = 'old'");
	cr_expect_str_eq(repaired(),
	    arena_printf(
		site.arena, "mutation_log %" PRId64 " repaired", pair));
	cr_expect_str_eq(
	    text("SELECT string_agg(concat_ws(' ', entity_id, hosts, "
		 "except_host, homeward), ', ' ORDER BY entity_id) AS t "
		 "FROM federation_mutation_log"),
	    before, "%" PRId64 " %" PRId64 " %" PRId64, mine.id, old.id,
	    account.id);
	cr_expect_str_eq(
	    sync_site_types(&site,
		sync_site_ask(&site, "luna.test", "{\"sinceTimestamp\":0}")),
	    "create create");
}

/* ---- by the migration ---- */

static void step(const char *file)
{
	char *script = arena_alloc(site.arena, 1 << 18);
	FILE *in = fopen(
	    arena_printf(site.arena, "%s/%s", test_db_schema_dir(), file), "r");

	cr_assert(in, "%s", file);
	cr_assert_lt(fread(script, 1, 1 << 18, in), 1 << 18);
	fclose(in);
	sql(script);
}

Test(repair, the_migration_repairs_too)
{
	sync_site_say(&site, sync_site_pair(&site, site.alice, zed()),
	    site.alice, "before there was a log");
	sql("DELETE FROM federation_mutation_log;"
	    "UPDATE dm_channels SET federated_id = NULL");
	step("0013_sync.down.sql");
	step("0013_sync.up.sql");
	cr_expect_str_eq(text("SELECT string_agg(action || ' ' || rows, ', ' "
			      "ORDER BY id) AS t FROM audit"),
	    "repair_federated_ids 1, repair_mutation_log 1");
	cr_expect_str_eq(repaired(), "nothing");
}

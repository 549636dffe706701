/*
 * What recorded servers were asked about the past, asked of our node: with
 * their log in our database the answers are theirs, byte for byte.
 */
#include <criterion/criterion.h>

#include "common/federation/sync.h"
#include "tests/lib/test_db.h"
#include "tests/wire/replay.h"
#include "tests/wire/sync_plant.h"

static const char *const versions[] = { NULL, "backspace-8e13aaa" };

/* ---- asked by hand: errors, and nothing for who takes no part ---- */

static const char nothing[] =
    "{\"events\":[],\"hasMore\":false,\"checkpoint\":0}";

Test(wire_sync, by_hand_130, .timeout = 300)
{
	static const char why[] = "sync";
	static const struct deviation deviations[] = {
		{ 1, why, 200, nothing },
		{ 2, why, 200, nothing },
		{ 3, why, 200, "\"events\":[],\"hasMore\":false" },
		{ 4, why, 200, "\"events\":[],\"hasMore\":false" },
		{ 5, why, 200, "\"events\":[],\"hasMore\":false" },
		{ 6, why, 200, nothing },
		{ 7, why, 200, nothing },
		{ 8, why, 200, nothing },
		{ 9, why, 200, nothing },
		{ 10, why, 200, nothing },
		{ 12, why, 200, nothing },
		{ 14, why, 200, nothing },
		{ 15, why, 200, nothing },
		{ 16, why, 200, nothing },
		{ 17, why, 200, nothing },
		{ 24, why, 200, nothing },
		{ 0 },
	};
	struct replay replay;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	replay.deviations = deviations;
	replay_case(&replay, "130-sync-by-hand");
	replay_end(&replay);
}

Test(wire_sync, by_hand_130_newer, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 0, "an instance's name and epoch", 200, "\"accepted\":true" },
		{ 28, "sync", 200, nothing },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	replay.deviations = deviations;
	recording =
	    recording_load_of(replay.arena, versions[1], "130-sync-by-hand");
	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].to, "nova.test"))
			replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

/* ---- asked by a participant ---- */

struct asked {
	struct arena *arena;
	char *conninfo;
	struct conn *conn;
	struct node node;
	bool older; /* its messages do not say their group */
};

static const char *ask(
    struct asked *asked, const char *host, const struct exchange *exchange)
{
	AUTO(tx_end) struct tx *tx = tx_new(asked->conn, asked->arena);
	struct sync_question question;
	struct buf out;
	struct err err = { 0 };

	cr_assert(sync_read(asked->arena, exchange->body, &question, &err) &&
		sync_answer(tx, &asked->node, host, &question, &out, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	return out.data;
}

/* The last row that was read may have told the asker nothing. */
static const char *without_checkpoint(struct asked *asked, const char *answer)
{
	const char *at = strstr(answer, ",\"checkpoint\":");

	cr_assert(at);
	return arena_textn(asked->arena, answer, (size_t)(at - answer));
}

static const char *checkpoint_of(const char *answer)
{
	return strstr(answer, ",\"checkpoint\":");
}

static const char *last_time(struct asked *asked, const char *answer)
{
	const char *found = NULL;

	for (const char *at = answer;
	     (at = strstr(at, "\"encryptionVersion\":0,\"timestamp\":")); at++)
		found = at + strlen("\"encryptionVersion\":0,\"timestamp\":");
	return found ? arena_printf(asked->arena, ",\"checkpoint\":%.*s}",
			   (int)strspn(found, "0123456789"), found)
		     : checkpoint_of(answer);
}

static const char *groups_silent(struct asked *asked, const char *answer)
{
	const char *all = test_db_text(asked->arena, asked->conninfo,
	    "SELECT coalesce(string_agg(federated_id, ' '), '') AS t "
	    "FROM dm_channels WHERE is_group");
	char *rest = arena_text(asked->arena, all);

	for (char *id = strtok_r(rest, " ", &rest); id;
	     id = strtok_r(NULL, " ", &rest))
		answer = text_replaced(asked->arena, answer,
		    arena_printf(asked->arena,
			"\"federatedId\":\"%s\",\"dmChannelId\"", id),
		    "\"dmChannelId\"");
	return answer;
}

static void compare(
    struct asked *asked, const char *host, const struct exchange *exchange)
{
	const char *want = sync_plant_plain(asked->arena, exchange->answer);
	const char *ours = ask(asked, host, exchange);

	if (asked->older)
		ours = groups_silent(asked, ours);
	cr_expect_str_eq(without_checkpoint(asked, ours),
	    without_checkpoint(asked, want), "%.*s: %s",
	    (int)exchange->body.len, (const char *)exchange->body.data, ours);
	cr_expect_str_eq(checkpoint_of(ours), last_time(asked, want));
}

static void answers_of(
    const char *version, const char *name, const char *asker, const char *us)
{
	struct asked asked = { .arena = arena_new(), .older = !version };
	struct recording recording =
	    recording_load_of(asked.arena, version, name);
	size_t count = 0;

	asked.conninfo = test_db_create();
	asked.conn = test_db_conn(asked.conninfo);
	cr_assert(origin_parse(asked.arena,
	    arena_printf(asked.arena, "https://%s", us), &asked.node.origin));
	sync_plant(asked.conninfo, &recording, asker, us);
	for (size_t i = 0; i < recording.count; i++) {
		if (!sync_plant_is_answer(&recording.exchanges[i], asker, us))
			continue;
		compare(&asked, asker, &recording.exchanges[i]);
		count++;
	}
	cr_expect_gt(count, 0, "%s: %s never asked %s", name, asker, us);
	conn_free(&asked.conn);
	test_db_drop(&asked.conninfo);
	arena_free(&asked.arena);
}

static void both(const char *name, const char *asker, const char *us)
{
	recording_check();
	test_db_needed();
	for (size_t i = 0; i < COUNT(versions); i++)
		answers_of(versions[i], name, asker, us);
}

Test(wire_sync, initial_with_pages_131, .timeout = 300)
{
	both("131-sync-initial", "orbit.test", "nova.test");
}

Test(wire_sync, initial_empty_132, .timeout = 300)
{
	recording_check();
	test_db_needed();
	/* The newer record has only what was asked of the recorder. */
	answers_of(NULL, "132-sync-initial-empty", "nova.test", "orbit.test");
}

Test(wire_sync, as_a_participant_133, .timeout = 300)
{
	both("133-sync-as-participant", "orbit.test", "nova.test");
}

/* What is answered to a node that asks what it has missed. */
#include <criterion/criterion.h>

#include "common/federation/sync.h"
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

TestSuite(sync, .init = begin, .fini = end, .timeout = 300);

static const char *const from_the_start = "{\"sinceTimestamp\":0}";

static const char *luna(const char *question)
{
	return sync_site_ask(&site, "luna.test", question);
}

static const char *told(const char *host)
{
	return sync_site_types(
	    &site, sync_site_ask(&site, host, from_the_start));
}

static int64_t zed(void)
{
	return sync_site_person(&site, "luna.test", "700");
}

static int64_t mutated_ms(const char *type)
{
	return relay_site_number(&site,
	    arena_printf(site.arena,
		"SELECT floor(extract(epoch FROM mutated_at) * 1000)::bigint "
		"AS n FROM federation_mutation_log WHERE mutation_type = '%s'",
		type));
}

/* ---- words ---- */

Test(sync, a_message_is_told_as_it_is_now_in_the_recorded_words)
{
	int64_t channel = sync_site_pair(&site, site.alice, zed());
	struct message message =
	    sync_site_say(&site, channel, site.alice, "one");
	const char *state;
	const char *answer;

	sync_site_edit(&site, &message, "two");
	answer = luna(from_the_start);
	state = arena_printf(site.arena,
	    "\"participants\":[{\"homeUserId\":\"%" PRId64
	    "\",\"homeInstance\":\"https://nova.test\",\"profile\":{"
	    "\"username\":\"alice\",\"displayName\":\"Alice\",\"avatar\":null,"
	    "\"avatarColor\":null}},{\"homeUserId\":\"700\",\"homeInstance\":"
	    "\"luna.test\",\"profile\":{\"username\":\"700@luna.test\","
	    "\"displayName\":null,\"avatar\":null,\"avatarColor\":null}}],"
	    "\"message\":{\"userId\":\"%" PRId64 "\",\"homeUserId\":\"%" PRId64
	    "\",\"homeInstance\":\"https://nova.test\",\"content\":\"two\","
	    "\"replyToId\":null,\"editedAt\":%" PRId64 ",\"createdAt\":%" PRId64
	    "}",
	    site.alice, site.alice, site.alice,
	    relay_site_number(&site,
		"SELECT (extract(epoch FROM edited_at) * 1000)::bigint AS n "
		"FROM dm_messages"),
	    message.created_at);
	cr_expect_str_eq(answer,
	    arena_printf(site.arena,
		"{\"events\":[{\"eventType\":\"create\",\"dmChannelId\":"
		"\"%" PRId64 "\",\"messageId\":\"%" PRId64
		"\",\"encryptionVersion\":0,\"timestamp\":%" PRId64
		",%s},{\"eventType\":\"update\",\"dmChannelId\":\"%" PRId64
		"\",\"messageId\":\"%" PRId64
		"\",\"encryptionVersion\":0,\"timestamp\":%" PRId64
		",%s}],\"hasMore\":false,\"checkpoint\":%" PRId64 "}",
		channel, message.id, mutated_ms("create"), state, channel,
		message.id, mutated_ms("update"), state,
		sync_site_checkpoint(answer)));
	cr_expect_str_eq(told("orbit.test"), "");
}

static const char *const group_id = "05d1f2b3-6ca2-4bd0-8641-a07555981695";

Test(sync, a_groups_messages_say_which_group)
{
	int64_t group = sync_site_group(&site, group_id, site.alice,
	    arena_printf(site.arena, "%" PRId64 ", %" PRId64 ", %" PRId64,
		site.alice, site.bob, zed()));
	struct message message =
	    sync_site_say(&site, group, site.alice, "to all");
	const char *head = arena_printf(site.arena,
	    "{\"events\":[{\"eventType\":\"create\",\"federatedId\":\"%s\","
	    "\"dmChannelId\":\"%" PRId64 "\",\"messageId\":\"%" PRId64
	    "\",\"encryptionVersion\":0,\"timestamp\":",
	    group_id, group, message.id);
	const char *answer = luna(from_the_start);

	cr_expect(strncmp(answer, head, strlen(head)) == 0, "%s", answer);
}

/* What is stored, and what is told of it; %s is the event's timestamp. */
static const struct words {
	const char *event_type;
	const char *payload; /* behind dmChannelId */
	const char *told;
} words[] = {
	{ "reaction_add",
	    "\"reaction\":{\"messageId\":\"5\",\"messageHomeInstance\":"
	    "\"https://nova.test\",\"userId\":\"1\",\"homeUserId\":\"1\","
	    "\"homeInstance\":\"https://nova.test\",\"emoji\":\"\\\"}{,:\","
	    "\"createdAt\":17}",
	    "\"dmChannelId\":\"77\",\"messageId\":\"5\",\"encryptionVersion\":"
	    "0,\"timestamp\":%s,\"reaction\":{\"userId\":\"1\","
	    "\"homeUserId\":\"1\",\"homeInstance\":\"https://nova.test\","
	    "\"emoji\":\"\\\"}{,:\",\"createdAt\":17}" },
	{ "reaction_remove",
	    "\"reaction\":{\"messageId\":\"5\",\"messageHomeInstance\":"
	    "\"https://nova.test\",\"userId\":\"1\",\"homeUserId\":\"1\","
	    "\"homeInstance\":\"https://nova.test\",\"emoji\":\"x\"}",
	    "\"dmChannelId\":\"77\",\"messageId\":\"5\",\"encryptionVersion\":"
	    "0,\"timestamp\":%s,\"reaction\":{\"userId\":\"1\","
	    "\"homeUserId\":\"1\",\"homeInstance\":\"https://nova.test\","
	    "\"emoji\":\"x\",\"createdAt\":%s}" },
	/* Born elsewhere: our id alone would say nothing. */
	{ "reaction_add",
	    "\"reaction\":{\"messageId\":\"m1\",\"messageHomeInstance\":"
	    "\"https://luna.test\",\"userId\":\"1\",\"emoji\":\"x\","
	    "\"createdAt\":17}",
	    "\"dmChannelId\":\"77\",\"messageId\":\"4\",\"encryptionVersion\":"
	    "0,\"timestamp\":%s,\"reaction\":{\"messageId\":\"m1\","
	    "\"messageHomeInstance\":\"https://luna.test\",\"userId\":\"1\","
	    "\"emoji\":\"x\",\"createdAt\":17}" },
	{ "read_state_update",
	    "\"federatedId\":\"acf3\",\"readState\":{\"user\":{},"
	    "\"messageRef\":{}}",
	    "\"dmChannelId\":\"77\",\"messageId\":\"e\",\"federatedId\":"
	    "\"acf3\",\"encryptionVersion\":0,\"timestamp\":%s,"
	    "\"readState\":{\"user\":{},\"messageRef\":{}}" },
	{ "file_rejected",
	    "\"attachmentId\":\"6\",\"sourceFilename\":\"b.bin\","
	    "\"affectedUserIds\":[\"1\",\"2\"]",
	    "\"dmChannelId\":\"77\",\"messageId\":\"e\",\"encryptionVersion\":"
	    "0,\"timestamp\":%s,\"attachmentId\":\"6\",\"sourceFilename\":"
	    "\"b.bin\",\"affectedUserIds\":[\"1\",\"2\"]" },
	{ "member_remove",
	    "\"federatedId\":\"g\",\"membership\":{\"reason\":\"leave\"}",
	    "\"contextType\":\"dm\",\"dmChannelId\":\"77\",\"messageId\":"
	    "\"e\",\"encryptionVersion\":0,\"timestamp\":%s,"
	    "\"federatedId\":\"g\",\"membership\":{\"reason\":\"leave\"}" },
};

static void words_check(const struct words *w)
{
	const char *at;
	struct buf want;
	const char *answer;

	test_db_script(site.conninfo, "DELETE FROM federation_mutation_log");
	sync_site_log(&site,
	    &(struct sync_log_row){ "dm", "77", w->event_type, "e",
		arena_printf(
		    site.arena, "\"dmChannelId\":\"77\",%s", w->payload),
		"'luna.test'" });
	answer = luna(from_the_start);
	at = arena_printf(site.arena, "%" PRId64, mutated_ms(w->event_type));
	buf_init(&want, site.arena, 1 << 16);
	buf_printf(&want, "{\"events\":[{\"eventType\":\"%s\",", w->event_type);
	for (const char *c = w->told; *c; c++) {
		if (strncmp(c, "%s", 2) == 0) {
			buf_text(&want, at);
			c++;
		} else {
			buf_char(&want, *c);
		}
	}
	buf_printf(&want, "}],\"hasMore\":false,\"checkpoint\":%" PRId64 "}",
	    sync_site_checkpoint(answer));
	cr_expect_str_eq(answer, want.data);
}

Test(sync, every_kind_of_event_has_the_recorded_form)
{
	relay_site_send(&site, relay_site_create(&site, "m1", "hello"));
	test_db_script(site.conninfo, "UPDATE dm_messages SET id = 4");
	for (size_t i = 0; i < COUNT(words); i++)
		words_check(&words[i]);
}

Test(sync, friends_and_profiles_have_passes_of_their_own)
{
	static const char friendship[] =
	    "\"friendship\":{\"from\":{\"homeUserId\":\"700\","
	    "\"homeInstance\":\"luna.test\"},\"to\":{\"homeUserId\":\"1\","
	    "\"homeInstance\":\"https://nova.test\"},\"createdAt\":5}";
	static const char profile[] =
	    "\"profileUpdate\":{\"homeUserId\":\"1\"}";

	sync_site_log(&site,
	    &(struct sync_log_row){ "friend", "friend:1:700", "friend_remove",
		"friend:1:700:5", friendship, "'luna.test'" });
	sync_site_log(&site,
	    &(struct sync_log_row){ "profile", "1", "profile_update", "1",
		profile, "'luna.test'" });
	cr_expect_str_eq(told("luna.test"), "");
	cr_expect(strstr(luna("{\"sinceTimestamp\":0,\"contextType\":"
			      "\"friend\"}"),
	    arena_printf(site.arena,
		"[{\"eventType\":\"friend_remove\",\"contextType\":\"friend\","
		"\"messageId\":\"friend:1:700:5\",\"encryptionVersion\":0,"
		"\"timestamp\":%" PRId64 ",%s}]",
		mutated_ms("friend_remove"), friendship)));
	cr_expect(strstr(luna("{\"sinceTimestamp\":0,\"contextType\":"
			      "\"profile\"}"),
	    arena_printf(site.arena,
		"[{\"eventType\":\"profile_update\",\"contextType\":"
		"\"profile\",\"messageId\":\"1\",\"encryptionVersion\":0,"
		"\"timestamp\":%" PRId64 ",%s}]",
		mutated_ms("profile_update"), profile)));
}

/* ---- questions ---- */

static const struct question {
	const char *body;
	int64_t limit;
	const char *context_type; /* NULL: refused */
} questions[] = {
	{ "{\"sinceTimestamp\":0}", 100, "dm" },
	{ "{\"sinceTimestamp\":1.5,\"limit\":0}", 1, "dm" },
	{ "{\"sinceTimestamp\":0,\"limit\":-7}", 1, "dm" },
	{ "{\"sinceTimestamp\":0,\"limit\":1.9}", 1, "dm" },
	{ "{\"sinceTimestamp\":0,\"limit\":501}", 500, "dm" },
	{ "{\"sinceTimestamp\":0,\"limit\":1e300}", 500, "dm" },
	{ "{\"sinceTimestamp\":0,\"limit\":\"5\"}", 100, "dm" },
	{ "{\"sinceTimestamp\":0,\"limit\":null}", 100, "dm" },
	{ "{\"sinceTimestamp\":0,\"contextType\":\"friend\"}", 100, "friend" },
	{ "{\"sinceTimestamp\":0,\"contextType\":\"profile\"}", 100,
	    "profile" },
	{ "{\"sinceTimestamp\":0,\"contextType\":\"space\"}", 100, "dm" },
	{ "{\"sinceTimestamp\":0,\"contextType\":[\"friend\"]}", 100, "dm" },
	{ "{\"sinceTimestamp\":1e300}", 100, "dm" },
	{ "{\"sinceTimestamp\":-1}", 0, NULL },
	{ "{\"sinceTimestamp\":\"0\"}", 0, NULL },
	{ "{\"sinceTimestamp\":null}", 0, NULL },
	{ "{}", 0, NULL },
	{ "[]", 0, NULL },
	{ "null", 0, NULL },
};

Test(sync, a_question_is_read_as_recorded)
{
	for (size_t i = 0; i < COUNT(questions); i++) {
		const struct question *q = &questions[i];
		struct sync_question read = { 0 };
		struct err err = { 0 };
		bool good = sync_read(site.arena,
		    (struct bytes){ q->body, strlen(q->body) }, &read, &err);

		cr_assert_eq(good, q->context_type != NULL, "%s", q->body);
		if (!good) {
			cr_expect_str_eq(err.text,
			    "sinceTimestamp must be a non-negative number");
			continue;
		}
		cr_expect_eq(read.limit, q->limit, "%s", q->body);
		cr_expect_str_eq(read.context_type, q->context_type);
	}
}

Test(sync, an_empty_page_echoes_the_question)
{
	cr_expect_str_eq(luna(from_the_start),
	    "{\"events\":[],\"hasMore\":false,\"checkpoint\":0}");
	cr_expect_str_eq(luna("{\"sinceTimestamp\":1796073185998}"),
	    "{\"events\":[],\"hasMore\":false,\"checkpoint\":1796073185998}");
	cr_expect_str_eq(luna("{\"sinceTimestamp\":1.5}"),
	    "{\"events\":[],\"hasMore\":false,\"checkpoint\":1.5}");
}

Test(sync, one_conversation_can_be_asked_for)
{
	int64_t pair = sync_site_pair(&site, site.alice, zed());
	int64_t group = sync_site_group(&site, group_id, site.alice,
	    arena_printf(site.arena, "%" PRId64 ", %" PRId64, site.alice,
		relay_site_number(&site,
		    "SELECT id AS n FROM users WHERE home_user_id = '700'")));
	const char *one;
	const char *two;

	one = arena_printf(site.arena, "%" PRId64,
	    sync_site_say(&site, pair, site.alice, "one").id);
	two = arena_printf(site.arena, "%" PRId64,
	    sync_site_say(&site, group, site.alice, "two").id);
	cr_expect_str_eq(sync_site_ids(&site,
			     luna(arena_printf(site.arena,
				 "{\"sinceTimestamp\":0,\"dmChannelId\":"
				 "\"%" PRId64 "\"}",
				 pair))),
	    one);
	cr_expect_str_eq(sync_site_ids(&site,
			     luna(arena_printf(site.arena,
				 "{\"sinceTimestamp\":0,\"federatedId\":"
				 "\"%s\"}",
				 group_id))),
	    two);
	cr_expect_str_eq(luna("{\"sinceTimestamp\":0,\"dmChannelId\":\"1\"}"),
	    "{\"events\":[],\"hasMore\":false,\"checkpoint\":0}");
	/* Unknown, and known but none of luna's: as if it were not there. */
	test_db_script(site.conninfo,
	    "INSERT INTO dm_channels (is_group, owner_id, federated_id) "
	    "SELECT true, id, 'theirs' FROM users WHERE username = 'bob'");
	cr_expect_str_eq(
	    sync_site_types(
		&site, luna("{\"sinceTimestamp\":0,\"federatedId\":\"nope\"}")),
	    "create create");
	cr_expect_str_eq(
	    sync_site_types(&site,
		luna("{\"sinceTimestamp\":0,\"federatedId\":\"theirs\"}")),
	    "create create");
}

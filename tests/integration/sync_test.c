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

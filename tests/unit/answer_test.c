#include <criterion/criterion.h>

#include "outboxd/answer.h"
#include "outboxd/reason.h"

static struct arena *arena;
static struct blocks *blocks;
static struct batch batch;

/* A batch of creates named a, b and d. */
static void begin(void)
{
	static struct entry entries[3];
	static const char *const names[] = { "a", "b", "d" };
	const struct rows window = { entries, COUNT(entries) };
	const struct batch_limits limits = { .events_max = 50, .now = 1 };

	arena = arena_new();
	blocks = blocks_new();
	for (size_t i = 0; i < COUNT(entries); i++)
		entries[i] = (struct entry){
			.id = (int64_t)i + 1,
			.context_type = "dm",
			.context_id = "c",
			.event_type = "create",
			.entity_id = names[i],
			.payload = "",
			.expires_at = 2,
		};
	batch_choose(&batch, arena, blocks, &window, &limits);
}

static void end(void)
{
	blocks_free(&blocks);
	arena_free(&arena);
}

TestSuite(answer, .init = begin, .fini = end);

static struct answer read_answer(int status, const char *body)
{
	const struct client_result result = {
		.outcome = CLIENT_ANSWERED,
		.status = status,
		.body = { body, strlen(body) },
		.retry_after_ms = -1,
	};
	struct answer answer = answer_keep(arena, &result);

	for (size_t i = 0; i < batch.count; i++) {
		batch.items[i].accepted = false;
		batch.items[i].refused = NULL;
	}
	answer_read(&answer, &batch, batch.arena);
	return answer;
}

/* "+" accepted, or the word, for a, b and d. */
static const char *told(void)
{
	struct buf out;

	buf_init(&out, arena, 1 << 10);
	for (size_t i = 0; i < batch.count; i++)
		buf_printf(&out, "%s%s", i ? " " : "",
		    batch.items[i].accepted ? "+" : batch.items[i].refused);
	return out.data;
}

Test(answer, says_of_each_event_what_became_of_it)
{
	/* clang-format off */
	static const struct {
		const char *body;
		const char *want;
	} cases[] = {
		{ "{\"accepted\":[\"a\",\"b\",\"d\"],\"rejected\":[],\"maxUploadSize\":5}",
		  "+ + +" },
		{ "{\"accepted\":[\"d\"],\"rejected\":[{\"messageId\":\"a\","
		  "\"reason\":\"duplicate\"}]}", "duplicate unanswered +" },
		{ "{\"accepted\":[\"a\",\"a\",\"zz\",null,7],\"rejected\":[null,"
		  "{\"messageId\":\"b\"},{\"messageId\":\"q\",\"reason\":\"x\"}]}",
		  "+ unanswered unanswered" },
		{ "{\"accepted\":[\"a\"],\"rejected\":[{\"messageId\":\"a\","
		  "\"reason\":\"duplicate\"}]}",
		  "in_both_lists unanswered unanswered" },
		{ "{\"rejected\":[{\"messageId\":\"a\",\"reason\":\"tw\\no w\xc3\xb6rds\"},"
		  "{\"messageId\":\"a\",\"reason\":\"later\"}],\"accepted\":[\"b\",\"d\"]}",
		  "tw?o?w??rds + +" },
		/* Newer servers: what reaches nobody. */
		{ "{\"accepted\":[\"b\"],\"rejected\":[],\"maxUploadSize\":5,"
		  "\"undeliverable\":[{\"messageId\":\"a\",\"reason\":\"no_recipient\"}]}",
		  "no_recipient + unanswered" },
		{ "{\"accepted\":[\"a\",\"b\"],\"rejected\":[{\"messageId\":\"d\","
		  "\"reason\":\"duplicate\"}],\"undeliverable\":[{\"messageId\":\"d\","
		  "\"reason\":\"no_recipient\"},7,{\"messageId\":\"b\"}]}",
		  "+ in_both_lists duplicate" },
		{ "{\"accepted\":[\"a\",\"b\",\"d\"],\"rejected\":[],"
		  "\"undeliverable\":\"none\",\"new\":{}}", "+ + +" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct answer answer = read_answer(200, cases[i].body);

		cr_expect_eq(answer.kind, ANSWER_SETTLED, "case %zu", i);
		cr_expect_str_eq(told(), cases[i].want, "case %zu", i);
	}
}

Test(answer, that_says_nothing_about_events_is_never_success)
{
	static const char *const bodies[] = { "", "ok", "[]", "{}",
		"<html>welcome</html>", "{\"accepted\":[]}",
		"{\"accepted\":{},\"rejected\":[]}",
		"{\"accepted\":[\"a\"],\"rejected\":[],", "null" };

	for (size_t i = 0; i < COUNT(bodies); i++)
		cr_expect_eq(read_answer(200, bodies[i]).kind, ANSWER_TRANSPORT,
		    "%s", bodies[i]);
}

Test(answer, is_classed_by_its_status)
{
	/* clang-format off */
	static const struct { int status; enum answer_kind kind; } cases[] = {
		{ 401, ANSWER_AUTH },      { 403, ANSWER_AUTH },
		{ 429, ANSWER_PAUSE },     { 400, ANSWER_BLAMED },
		{ 413, ANSWER_BLAMED },    { 422, ANSWER_BLAMED },
		{ 404, ANSWER_TRANSPORT }, { 409, ANSWER_TRANSPORT },
		{ 410, ANSWER_TRANSPORT }, { 301, ANSWER_TRANSPORT },
		{ 500, ANSWER_TRANSPORT }, { 503, ANSWER_TRANSPORT },
		{ 204, ANSWER_TRANSPORT },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(read_answer(cases[i].status, "").kind,
		    cases[i].kind, "status %d", cases[i].status);
}

Test(answer, pauses_as_long_as_asked_within_bounds)
{
	/* clang-format off */
	static const struct { int64_t after; int64_t pause; } cases[] = {
		{ -1, 5000 }, { 0, 1000 }, { 120000, 120000 },
		{ INT64_C(86400000), 3600000 },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct answer answer = {
			.outcome = CLIENT_ANSWERED,
			.status = 429,
			.retry_after_ms = cases[i].after,
		};

		answer_read(&answer, &batch, batch.arena);
		cr_expect_eq(answer.kind, ANSWER_PAUSE);
		cr_expect_eq(answer.pause_ms, cases[i].pause, "case %zu", i);
	}
}

Test(answer, none_at_all_is_a_failure_of_the_way)
{
	static const enum client_outcome outcomes[] = { CLIENT_NO_CONNECTION,
		CLIENT_CUT, CLIENT_TIMEOUT, CLIENT_TOO_LARGE,
		CLIENT_REFUSED_ADDRESS };
	struct answer aborted = { .outcome = CLIENT_ABORTED };

	for (size_t i = 0; i < COUNT(outcomes); i++) {
		struct answer answer = { .outcome = outcomes[i] };

		answer_read(&answer, &batch, batch.arena);
		cr_expect_eq(answer.kind, ANSWER_TRANSPORT, "case %zu", i);
	}
	answer_read(&aborted, &batch, batch.arena);
	cr_expect_eq(aborted.kind, ANSWER_ABORTED);
}

Test(reason, words_are_classed_in_one_table)
{
	/* clang-format off */
	static const struct {
		const char *type;
		const char *word;
		enum reason_class class;
	} cases[] = {
		{ "create", "duplicate",                REASON_THERE        },
		{ "create", "channel_not_found",        REASON_CONVERSATION },
		{ "update", "unknown_message",          REASON_MESSAGE      },
		{ "delete", "unknown_message",          REASON_THERE        },
		{ "reaction_remove", "unknown_message", REASON_THERE        },
		{ "create", "processing_error",         REASON_ENTITY       },
		{ "create", "no such word",             REASON_ENTITY       },
		{ "create", "",                         REASON_ENTITY       },
		{ "create", REASON_UNANSWERED,          REASON_ENTITY       },
		/* What entitles may come from a third node. */
		{ "create", "unauthorized_source",      REASON_ENTITY       },
		{ "member_remove", "unauthorized_source", REASON_ENTITY     },
		{ "create", "attribution_mismatch",     REASON_NEVER        },
		{ "x",      "unknown_event_type",       REASON_NEVER        },
		{ "create", "missing_participants",     REASON_NEVER        },
		{ "create", "recipient_not_found",      REASON_NEVER        },
		{ "create", "self_target_invalid",      REASON_NEVER        },
		{ "create", "no_recipient",             REASON_NEVER        },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(reason_class(cases[i].type, cases[i].word),
		    cases[i].class, "%s of a %s", cases[i].word, cases[i].type);
}

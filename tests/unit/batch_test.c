#include <criterion/criterion.h>

#include "outboxd/batch.h"

enum { NOW = 1000000, ENTRIES_MAX = 300 };

static struct arena *arena;
static struct blocks *blocks;

static void begin(void)
{
	arena = arena_new();
	blocks = blocks_new();
}

static void end(void)
{
	blocks_free(&blocks);
	arena_free(&arena);
}

TestSuite(batch, .init = begin, .fini = end);

/*
 * "create a", "update a 2": type, thing and payload; the place is the id.
 * Things of one letter share the conversation "c" unless "@x" follows; "!w"
 * is set aside with word w and due, "!!w" is not due yet; "~" has expired.
 */
static void entry_of(struct entry *entry, int64_t id, const char *text)
{
	char type[32] = "";
	char thing[32] = "";
	char rest[32] = "";
	const char *p;

	cr_assert_geq(sscanf(text, "%31s %31s %31s", type, thing, rest), 2);
	*entry = (struct entry){
		.id = id,
		.context_type = "dm",
		.context_id = "c",
		.event_type = arena_text(arena, type),
		.entity_id = arena_text(arena, thing),
		.payload =
		    arena_printf(arena, "\"p\":\"%s%d\"", thing, (int)id),
		.created_at = 100 + id,
		.expires_at = 2 * NOW,
	};
	p = strchr(rest, '@');
	if (p)
		entry->context_id = arena_textn(arena, p + 1, 1);
	p = strchr(rest, '!');
	if (p) {
		entry->retry_at = p[1] == '!' ? NOW + 1 : NOW - 1;
		entry->reason = arena_text(arena, p[1] == '!' ? p + 2 : p + 1);
		entry->refusals = 1;
	}
	if (strchr(rest, '~'))
		entry->expires_at = NOW - 1;
}

static void choose(
    struct batch *batch, const char *const *texts, int64_t presented_through)
{
	struct entry *entries =
	    arena_array(arena, ENTRIES_MAX, sizeof(*entries));
	struct rows window = { entries, 0 };
	const struct batch_limits limits = {
		.events_max = BATCH_EVENTS_MAX,
		.presented_through = presented_through,
		.now = NOW,
	};

	for (; texts[window.count]; window.count++)
		entry_of(&entries[window.count], (int64_t)window.count + 1,
		    texts[window.count]);
	batch_choose(batch, arena, blocks, &window, &limits);
}

/* "create a2@1" means: a create of a with the second entry's payload and the
 * first one's time. */
static const char *told(const struct batch *batch)
{
	struct buf out;

	buf_init(&out, arena, 1 << 16);
	for (size_t i = 0; i < batch->count; i++) {
		const struct item *item = &batch->items[i];

		if (item->cancelled)
			continue;
		buf_printf(&out, "%s%s %.*s@%d", out.len ? ", " : "",
		    item->event_type, (int)strlen(item->payload) - 6,
		    item->payload + 5, (int)(item->first->created_at - 100));
	}
	return out.data ? out.data : "";
}

static size_t length(const struct link *link)
{
	size_t count = 0;

	for (; link; link = link->next)
		count++;
	return count;
}

Test(batch, coalesces_what_happened_to_one_thing)
{
	/* clang-format off */
	static const struct {
		const char *name;
		const char *entries[6];
		int64_t presented;
		const char *sent;
		size_t cancelled;
		int64_t cursor;
	} cases[] = {
		{ "an edit joins its create",
		  { "create a", "update a" }, 0, "create a2@1", 0, 2 },
		{ "an edit joins a create that was sent already",
		  { "create a", "update a" }, 1, "create a2@1", 0, 2 },
		{ "several edits, the last counts",
		  { "create a", "update a", "update a" }, 0, "create a3@1", 0, 3 },
		{ "a delete meets a create nobody heard of",
		  { "create a", "delete a" }, 0, "", 2, 2 },
		{ "edit between them goes too",
		  { "create a", "update a", "delete a" }, 0, "", 3, 3 },
		{ "a delete of a presented create waits for it",
		  { "create a", "delete a" }, 1, "create a1@1", 0, 1 },
		{ "presented create, edited, then deleted",
		  { "create a", "update a", "delete a" }, 1, "create a2@1", 0, 2 },
		{ "two edits are one",
		  { "update a", "update a" }, 0, "update a2@1", 0, 2 },
		{ "an edit gives way to its delete",
		  { "update a", "delete a" }, 0, "delete a2@1", 0, 2 },
		{ "things don't mix",
		  { "create a", "create b", "update a" }, 0,
		  "create a3@1, create b2@2", 0, 3 },
		{ "kinds that have no rule stay apart",
		  { "update a", "file_rejected a", "update a" }, 0,
		  "update a1@1", 0, 1 },
		{ "what follows a waiting entry in its conversation waits too",
		  { "create a", "delete a", "create b", "create d @x" }, 1,
		  "create a1@1, create d4@4", 0, 1 },
		{ "the last state of a profile",
		  { "profile_update u", "profile_update u" }, 0,
		  "profile_update u2@1", 0, 2 },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct batch batch;

		choose(&batch, cases[i].entries, cases[i].presented);
		cr_expect_str_eq(
		    told(&batch), cases[i].sent, "%s", cases[i].name);
		cr_expect_eq(length(batch.cancelled), cases[i].cancelled, "%s",
		    cases[i].name);
		cr_expect_eq(
		    batch.cursor, cases[i].cursor, "%s", cases[i].name);
		blocks_clear(blocks);
	}
}

Test(batch, passes_over_what_waits_behind_a_refused_entry)
{
	/* clang-format off */
	static const struct {
		const char *name;
		const char *entries[6];
		const char *sent;
	} cases[] = {
		{ "an unknown conversation holds the conversation",
		  { "create a !!channel_not_found", "create b", "create d @x" },
		  "create d3@3" },
		{ "an unknown message holds the message",
		  { "update a !!unknown_message", "update a", "create b" },
		  "create b3@3" },
		{ "any other word holds the thing",
		  { "create a !!processing_error", "update a", "create b" },
		  "create b3@3" },
		{ "a due retry goes alone of its conversation",
		  { "create a !channel_not_found", "create b", "create d @x" },
		  "create a1@1, create d3@3" },
		{ "two refused of one conversation come back one by one",
		  { "create a !channel_not_found", "create b !channel_not_found" },
		  "create a1@1" },
		{ "an edit joins the retry of its create",
		  { "create a !channel_not_found", "update a" },
		  "create a2@1" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct batch batch;

		choose(&batch, cases[i].entries, 100);
		cr_expect_str_eq(
		    told(&batch), cases[i].sent, "%s", cases[i].name);
		blocks_clear(blocks);
	}
}

Test(batch, reactions_wait_behind_their_message_and_nothing_else_does)
{
	/* clang-format off */
	static const struct {
		const char *type;
		const char *word;
		const char *thing;
		bool waits;
	} cases[] = {
		{ "create",       "processing_error",  "m1", true  },
		{ "update",       "unknown_message",   "m1", true  },
		{ "reaction_add", "unknown_message",   "r1", true  },
		{ "reaction_add", "processing_error",  "r1", false },
		{ "create",       "processing_error",  "m2", false },
	};
	/* clang-format on */
	struct entry reaction = {
		.context_type = "dm",
		.context_id = "c",
		.event_type = "reaction_add",
		.entity_id = "r2",
		.payload =
		    "\"reaction\":{\"messageId\":\"m1\",\"emoji\":\"x\"}",
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct entry refused = reaction;

		refused.event_type = cases[i].type;
		refused.entity_id = cases[i].thing;
		blocks_clear(blocks);
		blocks_add(blocks, &refused, cases[i].word);
		cr_expect_eq(blocks_hit(blocks, arena, &reaction),
		    cases[i].waits, "case %zu", i);
	}
}

Test(batch, entries_out_of_time_leave_with_what_depends_on_them)
{
	static const char *const unheard[] = { "create a ~", "update a",
		"create b", NULL };
	static const char *const heard[] = { "create a ~", "delete a", NULL };
	struct batch batch;

	choose(&batch, unheard, 0);
	cr_expect_str_eq(told(&batch), "create b3@3");
	cr_expect_eq(length(batch.expired) + length(batch.cancelled), 2);
	blocks_clear(blocks);
	choose(&batch, heard, 1);
	cr_expect_str_eq(told(&batch), "delete a2@2");
	cr_expect_eq(length(batch.expired), 1);
}

static const char *const *many(const char *rest, size_t count)
{
	const char **texts = arena_array(arena, count + 1, sizeof(char *));

	for (size_t i = 0; i < count; i++)
		texts[i] = arena_printf(
		    arena, "create %c%zu %s", rest[0] ? 'r' : 'n', i, rest);
	return texts;
}

Test(batch, holds_fifty_events_and_goes_on_behind_them)
{
	struct batch batch;

	choose(&batch, many("", 120), 0);
	cr_expect_eq(batch.live, 50);
	cr_expect_eq(batch.cursor, 50);
	cr_expect_eq(batch.last_id, 50);
}

Test(batch, holds_at_most_ten_retries)
{
	struct batch batch;

	choose(&batch, many("!processing_error", 30), 100);
	cr_expect_eq(batch.live, 10);
}

Test(batch, a_peer_that_refuses_everything_gets_no_more_new_entries)
{
	struct batch batch;
	struct entry entry;

	for (int i = 0; i < BLOCKS_MAX; i++) {
		entry_of(&entry, 1, arena_printf(arena, "create z%d", i));
		blocks_add(blocks, &entry, "processing_error");
	}
	choose(&batch, many("", 3), 0);
	cr_expect_eq(batch.live, 0);
	cr_expect_eq(batch.cursor, 0);
}

Test(batch, is_written_as_the_recorded_traffic_has_it)
{
	static const char *const texts[] = { "create 7", "update 7", NULL };
	struct batch batch;
	struct buf out;

	choose(&batch, texts, 0);
	buf_init(&out, arena, 1 << 16);
	batch_write(&batch, "https://nova.test", &out);
	cr_expect_str_eq(out.data,
	    "{\"version\":1,\"sourceInstance\":\"https://nova.test\","
	    "\"events\":[{\"eventType\":\"create\",\"contextType\":\"dm\","
	    "\"messageId\":\"7\",\"encryptionVersion\":0,\"timestamp\":101,"
	    "\"p\":\"72\"}]}");
}

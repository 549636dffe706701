#include "common/federation/sync.h"

#include <math.h>

#include "common/base/log.h"
#include "common/federation/sync_event.h"

enum {
	LIMIT_DEFAULT = 100,
	LIMIT_MAX = 500,
	EMPTY_PAGES_MAX = 100,
	/* A page that has grown to this ends with its millisecond. */
	PAGE_BYTES = 8 << 20,
	PAGE_BYTES_MAX = 256 << 20
};

/* ---- the question ---- */

static int64_t limit_read(const struct json *value)
{
	double limit;

	if (!json_number(value, &limit))
		return LIMIT_DEFAULT;
	limit = floor(limit);
	if (limit < 1)
		return 1;
	return limit > LIMIT_MAX ? LIMIT_MAX : (int64_t)limit;
}

/* Whatever it is told beyond these two means the conversations. */
static const char *context_read(const struct json *value)
{
	static const char *const others[] = { "friend", "profile" };
	const char *type = json_string(value);

	for (size_t i = 0; type && i < COUNT(others); i++)
		if (strcmp(type, others[i]) == 0)
			return others[i];
	return "dm";
}

/* An absent, null or empty id asks for nothing in particular. */
static const char *id_read(const struct json *value)
{
	const char *id = json_string(value);

	return id && *id ? id : NULL;
}

bool sync_read(struct arena *arena, struct bytes body,
    struct sync_question *question, struct err *err)
{
	const struct json *value;
	double since;

	if (!json_parse(arena, body, &value, err))
		return false;
	if (!json_number(json_member(value, "sinceTimestamp"), &since) ||
	    since < 0)
		return err_set(err, ERR_INVALID,
		    "sinceTimestamp must be a non-negative number");
	*question = (struct sync_question){
		.since_told = since + 0.0,
		.since = since < 9e15 ? (int64_t)floor(since)
				      : INT64_C(9000000000000000),
		.context_type = context_read(json_member(value, "contextType")),
		.channel = id_read(json_member(value, "dmChannelId")),
		.federated_id = id_read(json_member(value, "federatedId")),
		.limit = limit_read(json_member(value, "limit")),
	};
	return true;
}

/* ---- the answer ---- */

struct answer {
	struct arena *arena;
	const struct node *node;
	const struct sync_question *question;
	struct sync_reach reach;
	struct json_out out;
	int64_t through; /* ms of the last row; 0: none */
	bool more;
	int64_t events;
};

/*
 * Which conversations: dmChannelId is taken at its word, an unknown
 * federatedId is ignored, as is what belongs to neither.
 */
static bool contexts_find(struct tx *tx, struct answer *answer, struct err *err)
{
	const struct sync_question *question = answer->question;
	struct rows *contexts = ARENA_NEW(answer->arena, struct rows);
	struct sync_context *one;

	if (strcmp(question->context_type, "dm") != 0)
		return true;
	if (question->channel) {
		one = ARENA_NEW(answer->arena, struct sync_context);
		one->id = question->channel;
		*contexts = (struct rows){ one, 1 };
		answer->reach.contexts = contexts;
		return true;
	}
	if (!question->federated_id)
		return true;
	if (!sync_contexts(
		tx, answer->reach.host, question->federated_id, contexts, err))
		return false;
	if (contexts->count)
		answer->reach.contexts = contexts;
	return true;
}

/* Is this row's millisecond another one than that before? */
static bool ms_begins(const struct sync_row *rows, size_t place)
{
	return place > 0 && rows[place].ready_ms != rows[place - 1].ready_ms;
}

static void page_put(struct answer *answer, const struct sync_page *page)
{
	const struct sync_row *rows = page->rows.items;
	size_t count = page->rows.count;

	answer->more = count >= (size_t)answer->reach.limit;
	for (size_t i = 0; i < count; i++) {
		if (ms_begins(rows, i) && answer->out.buf->len > PAGE_BYTES) {
			answer->more = true;
			return;
		}
		answer->events += sync_event_put(
		    &answer->out, answer->arena, answer->node, page, &rows[i]);
		answer->through = rows[i].ready_ms;
	}
}

/* Who gets an empty page stops asking: look on while more follows. */
static bool pages_put(struct tx *tx, struct answer *answer, struct err *err)
{
	struct sync_page page;

	for (int i = 0; i < EMPTY_PAGES_MAX; i++) {
		if (!sync_page_read(tx, &answer->reach, &page, err))
			return false;
		page_put(answer, &page);
		if (answer->events || !answer->more)
			break;
		answer->reach.since = answer->through;
	}
	return true;
}

static void end_put(struct answer *answer, bool waiting)
{
	json_close_list(&answer->out);
	json_put_bool(&answer->out, "hasMore", answer->more || waiting);
	if (answer->through)
		json_put_int(&answer->out, "checkpoint", answer->through);
	else
		json_put_real(
		    &answer->out, "checkpoint", answer->question->since_told);
	json_close(&answer->out);
}

bool sync_answer(struct tx *tx, const struct node *node, const char *host,
    const struct sync_question *question, struct buf *out, struct err *err)
{
	struct answer answer = {
		.arena = tx_arena(tx),
		.node = node,
		.question = question,
		.reach = {
			.node = node,
			.host = host,
			.context_type = question->context_type,
			.since = question->since,
			.limit = question->limit,
		},
		.out = { .buf = out },
	};
	bool waiting;

	buf_init(out, answer.arena, PAGE_BYTES_MAX);
	json_open(&answer.out, NULL);
	json_open_list(&answer.out, "events");
	if (!sync_publish(tx, &waiting, err) ||
	    !contexts_find(tx, &answer, err) || !pages_put(tx, &answer, err))
		return false;
	end_put(&answer, waiting);
	if (!buf_ok(out))
		return err_set(err, ERR_BUG, "a page of sync is too long");
	log_info("sync.answered", F("peer", v_text(host)),
	    F("context", v_text(question->context_type)),
	    F("events", v_int(answer.events)));
	return true;
}

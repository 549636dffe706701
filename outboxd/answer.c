#include "outboxd/answer.h"

#include "outboxd/reason.h"

enum { WORD_MAX = 64 };

struct answer answer_keep(
    struct arena *arena, const struct client_result *result)
{
	struct answer answer = {
		.outcome = result->outcome,
		.status = result->status,
		.retry_after_ms = result->retry_after_ms,
		.took_ms = result->took_ms,
		.text = result->text ? arena_text(arena, result->text) : NULL,
	};

	if (result->outcome != CLIENT_ANSWERED)
		return answer;
	answer.body.data =
	    arena_textn(arena, result->body.data, result->body.len);
	answer.body.len = result->body.len;
	return answer;
}

static enum answer_kind kind_of_status(int status)
{
	switch (status) {
	case 401:
	case 403:
		return ANSWER_AUTH;
	case 429:
		return ANSWER_PAUSE;
	case 400:
	case 413:
	case 422:
		return ANSWER_BLAMED;
	}
	return status >= 200 && status < 300 ? ANSWER_SETTLED
					     : ANSWER_TRANSPORT;
}

static void read_accepted(const struct json *list, struct batch *batch)
{
	for (size_t i = 0; i < json_count(list); i++) {
		const char *id = json_string(json_element(list, i));
		struct item *item = id ? batch_find(batch, id) : NULL;

		if (item)
			item->accepted = true;
	}
}

/* The peer's word goes to the log and the database: cut, and only letters. */
static const char *word_of(struct arena *arena, const struct json *line)
{
	const char *given = json_string(json_member(line, "reason"));
	char *word;

	if (!given || !given[0])
		return REASON_UNANSWERED;
	word = arena_textn(arena, given, strnlen(given, WORD_MAX));
	for (char *p = word; *p; p++)
		if (*p <= ' ' || *p > '~')
			*p = '?';
	return word;
}

static void read_rejected(
    const struct json *list, struct batch *batch, struct arena *arena)
{
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json *line = json_element(list, i);
		const char *id = json_string(json_member(line, "messageId"));
		struct item *item = id ? batch_find(batch, id) : NULL;

		if (item && !item->refused)
			item->refused = word_of(arena, line);
	}
}

/* In no list or in both: refused for now. */
static void settle_doubts(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct item *item = &batch->items[i];

		if (item->cancelled || item->accepted != !!item->refused)
			continue;
		item->refused =
		    item->accepted ? REASON_BOTH_LISTS : REASON_UNANSWERED;
		item->accepted = false;
	}
}

static void read_settled(
    struct answer *answer, struct batch *batch, struct arena *arena)
{
	const struct json *root;
	const struct json *accepted;
	const struct json *rejected;
	struct err err = { 0 };
	int64_t size;

	answer->kind = ANSWER_TRANSPORT;
	answer->text = "answer without lists";
	if (!json_parse(arena, answer->body, &root, &err))
		return;
	accepted = json_member(root, "accepted");
	rejected = json_member(root, "rejected");
	if (json_type(accepted) != JSON_ARRAY ||
	    json_type(rejected) != JSON_ARRAY)
		return;
	read_accepted(accepted, batch);
	read_rejected(rejected, batch, arena);
	/* Of newer servers: what reaches nobody is in this list only. */
	read_rejected(json_member(root, "undeliverable"), batch, arena);
	settle_doubts(batch);
	if (json_whole(json_member(root, "maxUploadSize"), &size) && size > 0)
		answer->max_upload_size = size;
	answer->kind = ANSWER_SETTLED;
	answer->text = NULL;
}

static int64_t pause_ms(const struct answer *answer)
{
	int64_t ms = answer->retry_after_ms;

	if (ms < 0)
		return ANSWER_PAUSE_MS;
	if (ms < 1000)
		return 1000;
	return ms < ANSWER_PAUSE_MAX_MS ? ms : ANSWER_PAUSE_MAX_MS;
}

void answer_read(
    struct answer *answer, struct batch *batch, struct arena *arena)
{
	answer->read = true;
	if (answer->outcome == CLIENT_ABORTED) {
		answer->kind = ANSWER_ABORTED;
		return;
	}
	answer->kind = ANSWER_TRANSPORT;
	if (answer->outcome != CLIENT_ANSWERED)
		return;
	answer->kind = kind_of_status(answer->status);
	answer->pause_ms = pause_ms(answer);
	if (answer->kind == ANSWER_SETTLED)
		read_settled(answer, batch, arena);
	else
		answer->text = arena_printf(arena, "status %d", answer->status);
}

bool answer_takes_all(const struct answer *answer, const struct batch *batch)
{
	if (!answer->read || answer->kind != ANSWER_SETTLED)
		return false;
	for (size_t i = 0; i < batch->count; i++)
		if (!batch->items[i].cancelled && !batch->items[i].accepted)
			return false;
	return true;
}

#include "common/chat/message.h"

#include "common/chat/attachment.h"
#include "common/chat/reaction.h"
#include "common/pg/notify.h"

#include "common/chat/message.sql.h"

enum { JSON_MAX = 64 << 20, PAGE_DEFAULT = 50 };

/* clang-format off */
const struct shape message_row_shape[] = {
	SHAPE(ID,   struct message, id, "id"),
	SHAPE(ID,   struct message, dm_channel_id, "dmChannelId"),
	SHAPE(ID,   struct message, user_id, "userId"),
	SHAPE(ID,   struct message, reply_to_id, "replyToId"),
	SHAPE(TEXT, struct message, content, "content"),
	SHAPE(TEXT, struct message, type, "type"),
	SHAPE(TIME, struct message, edited_at, "editedAt"),
	SHAPE(TIME, struct message, created_at, "createdAt"),
	SHAPE(TEXT, struct message, source_message_id, "sourceMessageId"),
	SHAPE(TEXT, struct message, source_instance, "sourceInstance"),
	SHAPE(INT,  struct message, seq, NULL),
	SHAPE_END(struct message),
};
/* clang-format on */

/* ---- writing ---- */

/* Trimmed; blank is NULL. */
static bool content_check(struct arena *arena, const char *content,
    const char **trimmed, struct err *err)
{
	const char *text = json_trim(arena, content);

	if (text && json_units(text) > MESSAGE_CONTENT_MAX)
		return err_set(err, ERR_INVALID,
		    "Message content must be at most %d characters",
		    MESSAGE_CONTENT_MAX);
	*trimmed = text && *text ? text : NULL;
	return true;
}

static bool draft_check(struct arena *arena, const struct draft *draft,
    const char **content, struct err *err)
{
	if (!content_check(arena, draft->content, content, err))
		return false;
	if (!*content && draft->file_count == 0)
		return err_set(err, ERR_INVALID,
		    "Message content or attachments are required");
	if (draft->file_count > MESSAGE_FILES_MAX)
		return err_set(err, ERR_INVALID,
		    "At most %d attachments are allowed", MESSAGE_FILES_MAX);
	return true;
}

bool message_create(struct tx *tx, const struct draft *draft,
    struct message *message, struct err *err)
{
	struct message new;
	const char *content;
	bool made;

	if (!draft_check(tx_arena(tx), draft, &content, err) ||
	    !sql_opt(tx, &SQL_message_insert, message_row_shape, &new, &made,
		err, v_id(draft->channel), v_id(draft->author), v_text(content),
		v_id(draft->reply_to)))
		return false;
	if (!made)
		return err_set(err, ERR_INVALID,
		    "replyToId is not a message of this channel");
	if (!attachments_use(tx, draft->files, draft->file_count, draft->author,
		new.id, err))
		return false;
	signal_conversation(tx, new.dm_channel_id, new.seq);
	*message = new;
	return true;
}

static bool own_message(struct tx *tx, int64_t id, int64_t author,
    const char *verb, struct message *message, struct err *err)
{
	bool found;

	if (!sql_opt(tx, &SQL_message_find, message_row_shape, message, &found,
		err, v_id(id)))
		return false;
	if (!found)
		return err_set(err, ERR_ABSENT, "Message not found");
	if (message->user_id != author || strcmp(message->type, "user") != 0)
		return err_set(err, ERR_FORBIDDEN,
		    "You can only %s your own messages", verb);
	return true;
}

bool message_edit(struct tx *tx, int64_t id, int64_t author,
    const char *content, struct message *message, struct err *err)
{
	struct message found;
	const char *text;
	bool done;

	if (!content_check(tx_arena(tx), content, &text, err))
		return false;
	if (!text)
		return err_set(err, ERR_INVALID, "Message content is required");
	if (!own_message(tx, id, author, "edit", &found, err) ||
	    !sql_opt(tx, &SQL_message_edit, message_row_shape, &found, &done,
		err, v_id(id), v_id(found.dm_channel_id), v_text(text)))
		return false;
	/* Deleted while we waited for the conversation. */
	if (!done)
		return err_set(err, ERR_ABSENT, "Message not found");
	signal_conversation(tx, found.dm_channel_id, found.seq);
	*message = found;
	return true;
}

bool message_delete(struct tx *tx, int64_t id, int64_t author,
    struct message *message, struct err *err)
{
	struct message found;
	bool done;

	if (!own_message(tx, id, author, "delete", &found, err) ||
	    !sql_opt(tx, &SQL_message_delete, message_row_shape, &found, &done,
		err, v_id(id), v_id(found.dm_channel_id)))
		return false;
	if (!done)
		return err_set(err, ERR_ABSENT, "Message not found");
	signal_conversation(tx, found.dm_channel_id, found.seq);
	*message = found;
	return true;
}

/* ---- reading ---- */

/* All that a page shows, in one statement a kind. */
struct page {
	struct rows messages; /* newest first */
	struct rows files;
	struct rows reactions;
	struct rows replies;
	struct rows users;
};

static bool page_hanging(struct tx *tx, struct page *page, struct err *err)
{
	const struct message *messages = page->messages.items;
	size_t count = page->messages.count;
	int64_t *ids = arena_array(tx_arena(tx), count, sizeof(*ids));
	int64_t *replied = arena_array(tx_arena(tx), count, sizeof(*replied));
	size_t replies = 0;

	for (size_t i = 0; i < count; i++) {
		ids[i] = messages[i].id;
		if (messages[i].reply_to_id)
			replied[replies++] = messages[i].reply_to_id;
	}
	return attachments_of(tx, ids, count, &page->files, err) &&
	    reactions_of(tx, ids, count, &page->reactions, err) &&
	    (replies == 0 ||
		sql_many(tx, &SQL_message_one, message_row_shape,
		    &page->replies, err, v_ids(replied, replies)));
}

static bool page_people(struct tx *tx, struct page *page, struct err *err)
{
	const struct message *messages = page->messages.items;
	const struct message *replies = page->replies.items;
	const struct reaction *reactions = page->reactions.items;
	size_t most =
	    page->messages.count + page->replies.count + page->reactions.count;
	int64_t *ids = arena_array(tx_arena(tx), most, sizeof(*ids));
	size_t count = 0;

	for (size_t i = 0; i < page->messages.count; i++)
		ids[count++] = messages[i].user_id;
	for (size_t i = 0; i < page->replies.count; i++)
		ids[count++] = replies[i].user_id;
	for (size_t i = 0; i < page->reactions.count; i++)
		ids[count++] = reactions[i].user_id;
	return users_by_ids(tx, ids, count, &page->users, err);
}

static bool page_read(struct tx *tx, struct page *page, struct err *err)
{
	return page->messages.count == 0 ||
	    (page_hanging(tx, page, err) && page_people(tx, page, err));
}

static void put_user(
    struct json_out *out, const struct page *page, int64_t user)
{
	json_put_raw(out, "user", (struct bytes){ "", 0 });
	user_write(out->buf, users_find(&page->users, user), false);
}

static void put_empty(struct json_out *out, const char *name)
{
	json_open_list(out, name);
	json_close_list(out);
}

static void put_files(
    struct json_out *out, const struct page *page, int64_t message)
{
	const struct attachment *files = page->files.items;

	json_open_list(out, "attachments");
	for (size_t i = 0; i < page->files.count; i++)
		if (files[i].dm_message_id == message)
			json_put_shape(out, NULL, attachment_shape, &files[i]);
	json_close_list(out);
}

static void put_reactions(
    struct json_out *out, const struct page *page, int64_t message)
{
	const struct reaction *all = page->reactions.items;

	json_open_list(out, "reactions");
	for (size_t i = 0; i < page->reactions.count; i++) {
		if (all[i].dm_message_id != message)
			continue;
		json_open(out, NULL);
		json_put_id(out, "id", all[i].id);
		json_put_id(out, "messageId", all[i].dm_message_id);
		json_put_id(out, "userId", all[i].user_id);
		json_put_text(out, "emoji", all[i].emoji);
		json_put_int(out, "createdAt", all[i].created_at);
		put_user(out, page, all[i].user_id);
		json_close(out);
	}
	json_close_list(out);
}

static void put_fields(struct json_out *out, const struct message *message)
{
	json_put_id(out, "id", message->id);
	json_put_id(out, "dmChannelId", message->dm_channel_id);
	json_put_id(out, "userId", message->user_id);
	json_put_id(out, "replyToId", message->reply_to_id);
	json_put_text(out, "content", message->content);
	json_put_text(out, "type", message->type);
	json_put_time(out, "editedAt", message->edited_at);
	json_put_int(out, "createdAt", message->created_at);
}

static void put_reply(
    struct json_out *out, const struct page *page, int64_t reply_to)
{
	const struct message *replies = page->replies.items;
	const struct message *reply = NULL;

	for (size_t i = 0; i < page->replies.count; i++)
		if (replies[i].id == reply_to)
			reply = &replies[i];
	if (!reply) {
		json_put_null(out, "replyTo");
		return;
	}
	json_open(out, "replyTo");
	put_fields(out, reply);
	put_user(out, page, reply->user_id);
	put_empty(out, "attachments");
	put_empty(out, "embeds");
	put_empty(out, "reactions");
	json_close(out);
}

static void put_message(struct json_out *out, const struct page *page,
    const struct message *message)
{
	json_open(out, NULL);
	put_fields(out, message);
	json_put_text(out, "sourceMessageId", message->source_message_id);
	json_put_text(out, "sourceInstance", message->source_instance);
	put_user(out, page, message->user_id);
	put_files(out, page, message->id);
	put_empty(out, "embeds");
	put_reactions(out, page, message->id);
	put_reply(out, page, message->reply_to_id);
	json_close(out);
}

bool message_json(struct tx *tx, int64_t id, const char **json, struct err *err)
{
	struct page page = { .messages = { 0 } };
	struct buf text;
	struct json_out out = { .buf = &text };

	if (!sql_many(tx, &SQL_message_one, message_row_shape, &page.messages,
		err, v_ids(&id, 1)) ||
	    !page_read(tx, &page, err))
		return false;
	if (page.messages.count == 0)
		return err_set(err, ERR_ABSENT, "Message not found");
	buf_init(&text, tx_arena(tx), JSON_MAX);
	put_message(&out, &page, page.messages.items);
	*json = text.data;
	return true;
}

static bool page_find(struct tx *tx, int64_t channel, int64_t before,
    int64_t limit, struct rows *messages, struct err *err)
{
	if (before)
		return sql_many(tx, &SQL_message_page_before, message_row_shape,
		    messages, err, v_id(channel), v_int(limit), v_id(before));
	return sql_many(tx, &SQL_message_page, message_row_shape, messages, err,
	    v_id(channel), v_int(limit));
}

bool message_page_json(struct tx *tx, int64_t channel, int64_t before,
    int64_t limit, const char **json, struct err *err)
{
	struct page page = { .messages = { 0 } };
	struct buf text;
	struct json_out out = { .buf = &text };
	const struct message *messages;

	if (limit == 0)
		limit = PAGE_DEFAULT;
	if (limit < 1)
		limit = 1;
	if (limit > MESSAGE_PAGE_MAX)
		limit = MESSAGE_PAGE_MAX;
	if (!page_find(tx, channel, before, limit, &page.messages, err) ||
	    !page_read(tx, &page, err))
		return false;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_open_list(&out, NULL);
	messages = page.messages.items;
	for (size_t i = page.messages.count; i > 0; i--)
		put_message(&out, &page, &messages[i - 1]);
	json_close_list(&out);
	*json = text.data;
	return true;
}

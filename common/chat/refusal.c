#include "common/chat/refusal.h"

#include "common/base/id.h"
#include "common/chat/attachment.h"
#include "common/chat/event.h"
#include "common/chat/user.h"

#include "common/chat/refusal.sql.h"

enum { META_MAX = 64 * 1024 };

struct marking {
	struct tx *tx;
	struct rows files;
	struct rows users;
	/* what is to be written and told */
	int64_t *ids;
	const char **metas;
	struct change *changes;
	struct user_change *notices;
	size_t count;
};

/* ---- which file ---- */

/* By its name here; the only one may have had another. */
static const struct attachment *file_of(
    const struct rows *files, const struct refusal *refusal)
{
	const struct attachment *all = files->items;
	const struct attachment *any = NULL;
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++) {
		if (all[i].dm_message_id != refusal->message)
			continue;
		if (refusal->filename &&
		    strcmp(all[i].filename, refusal->filename) == 0)
			return &all[i];
		any = &all[i];
		count++;
	}
	return count == 1 ? any : NULL;
}

/* ---- its list of people ---- */

struct line {
	const char *user_id;
	const char *username;
	int64_t limit;
};

struct lines {
	struct line all[REFUSED_PEOPLE_MAX];
	size_t count;
	bool changed;
};

static void lines_put(struct lines *lines, const struct line *line)
{
	for (size_t i = 0; i < lines->count; i++) {
		struct line *known = &lines->all[i];

		if (strcmp(known->user_id, line->user_id) != 0)
			continue;
		lines->changed |= known->limit != line->limit;
		known->limit = line->limit;
		return;
	}
	if (lines->count == REFUSED_PEOPLE_MAX)
		return;
	lines->all[lines->count++] = *line;
	lines->changed = true;
}

/* What is no list is forgotten. */
static void lines_read(
    struct arena *arena, const char *meta, struct lines *lines)
{
	const struct json *list = NULL;
	struct err ignored = { 0 };

	if (!meta ||
	    !json_parse(
		arena, (struct bytes){ meta, strlen(meta) }, &list, &ignored) ||
	    json_type(list) != JSON_ARRAY)
		return;
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json *item = json_element(list, i);
		struct line line = {
			.user_id = json_string(json_member(item, "userId")),
			.username = json_string(json_member(item, "username")),
		};

		if (line.user_id &&
		    json_whole(json_member(item, "limit"), &line.limit))
			lines_put(lines, &line);
	}
	lines->changed = false;
}

static const char *lines_write(struct arena *arena, const struct lines *lines)
{
	struct buf text;
	struct json_out out = { .buf = &text };

	buf_init(&text, arena, META_MAX);
	json_open_list(&out, NULL);
	for (size_t i = 0; i < lines->count; i++) {
		json_open(&out, NULL);
		json_put_text(&out, "userId", lines->all[i].user_id);
		json_put_text(&out, "username", lines->all[i].username);
		json_put_int(&out, "limit", lines->all[i].limit);
		json_close(&out);
	}
	json_close_list(&out);
	assert(buf_ok(&text));
	return text.data;
}

/* ---- marking ---- */

static void mark(struct marking *marking, const struct refusal *refusal,
    const struct attachment *file)
{
	struct arena *arena = tx_arena(marking->tx);
	struct lines *lines = ARENA_NEW(arena, struct lines);

	lines_read(arena, file->federation_meta, lines);
	for (size_t i = 0; i < refusal->people_count; i++) {
		const struct user *user =
		    users_find(&marking->users, refusal->people[i]);
		const struct line line = { id_text(arena, user->id),
			user->username, refusal->limit };

		lines_put(lines, &line);
	}
	if (!lines->changed)
		return;
	marking->ids[marking->count] = file->id;
	marking->metas[marking->count] = lines_write(arena, lines);
	marking->changes[marking->count] =
	    (struct change){ refusal->conversation, "message_updated",
		    refusal->message, refusal->author };
	marking->notices[marking->count++] =
	    (struct user_change){ refusal->author, "federation_file_rejected",
		    id_text(arena, file->id), refusal->people[0] };
}

static void mark_each(
    struct marking *marking, struct refusal *refusals, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct attachment *file =
		    file_of(&marking->files, &refusals[i]);
		const char *status = file ? file->federation_status : NULL;

		refusals[i].no_file = !file;
		if (file && refusals[i].people_count &&
		    (!status || strcmp(status, "remote") != 0))
			mark(marking, &refusals[i], file);
	}
}

static bool marking_read(struct marking *marking,
    const struct refusal *refusals, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(marking->tx);
	int64_t *messages = arena_array(arena, count, sizeof(*messages));
	size_t people = 0;
	int64_t *ids;

	for (size_t i = 0; i < count; i++) {
		messages[i] = refusals[i].message;
		people += refusals[i].people_count;
	}
	ids = arena_array(arena, people, sizeof(*ids));
	people = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < refusals[i].people_count; j++)
			ids[people++] = refusals[i].people[j];
	marking->ids = arena_array(arena, count, sizeof(int64_t));
	marking->metas = arena_array(arena, count, sizeof(char *));
	marking->changes = arena_array(arena, count, sizeof(struct change));
	marking->notices =
	    arena_array(arena, count, sizeof(struct user_change));
	return attachments_of(
		   marking->tx, messages, count, &marking->files, err) &&
	    users_by_ids(marking->tx, ids, people, &marking->users, err);
}

bool refusals_add(
    struct tx *tx, struct refusal *refusals, size_t count, struct err *err)
{
	struct marking marking = { .tx = tx };

	if (!marking_read(&marking, refusals, count, err))
		return false;
	mark_each(&marking, refusals, count);
	return marking.count == 0 ||
	    (sql_none(tx, &SQL_refusals_mark, err,
		 v_ids(marking.ids, marking.count),
		 v_texts(marking.metas, marking.count)) &&
		changes_append(tx, marking.changes, marking.count, NULL, err) &&
		user_changes_append(tx, marking.notices, marking.count, err));
}

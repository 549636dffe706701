#include "common/federation/sync_page.h"

#include "common/base/id.h"
#include "common/chat/attachment.h"
#include "common/federation/sync_members.h"

#include "common/federation/sync_page.sql.h"

enum { PUBLISH_AT_ONCE = 2000, PUBLISHES_MAX = 10, PATIENCE_MS = 200 };

/* clang-format off */
static const struct shape row_shape[] = {
	SHAPE(INT,  struct sync_row, ready_ms, NULL),
	SHAPE(TEXT, struct sync_row, context_type, NULL),
	SHAPE(TEXT, struct sync_row, context_id, NULL),
	SHAPE(TEXT, struct sync_row, event_type, NULL),
	SHAPE(TEXT, struct sync_row, entity_id, NULL),
	SHAPE(TEXT, struct sync_row, payload, NULL),
	SHAPE(TIME, struct sync_row, at, NULL),
	SHAPE(ID,   struct sync_row, message_id, NULL),
	SHAPE(ID,   struct sync_row, dm_channel_id, NULL),
	SHAPE(ID,   struct sync_row, user_id, NULL),
	SHAPE(ID,   struct sync_row, reply_to_id, NULL),
	SHAPE(TEXT, struct sync_row, content, NULL),
	SHAPE(TIME, struct sync_row, edited_at, NULL),
	SHAPE(TIME, struct sync_row, created_at, NULL),
	SHAPE(INT,  struct sync_row, encryption_version, NULL),
	SHAPE(TEXT, struct sync_row, source_instance, NULL),
	SHAPE(TEXT, struct sync_row, source_message_id, NULL),
	SHAPE_END(struct sync_row),
};

static const struct shape place_shape[] = {
	SHAPE(ID,   struct sync_place, conversation, NULL),
	SHAPE(TEXT, struct sync_place, federated_id, NULL),
	SHAPE(ID,   struct sync_place, user_id, NULL),
	SHAPE_END(struct sync_place),
};

static const struct shape context_shape[] = {
	SHAPE(TEXT, struct sync_context, id, NULL),
	SHAPE_END(struct sync_context),
};
/* clang-format on */

/* ---- what is readable ---- */

struct published {
	int64_t published;
};

static const struct shape published_shape[] = {
	SHAPE(INT, struct published, published, NULL),
	SHAPE_END(struct published),
};

bool sync_publish(struct tx *tx, bool *more, struct err *err)
{
	struct published rows = { PUBLISH_AT_ONCE };

	for (int i = 0; i < PUBLISHES_MAX && rows.published == PUBLISH_AT_ONCE;
	     i++)
		if (!sql_one(tx, &SQL_sync_publish, published_shape, &rows, err,
			v_int(PUBLISH_AT_ONCE), v_span(PATIENCE_MS)))
			return false;
	*more = rows.published == PUBLISH_AT_ONCE;
	return true;
}

bool sync_contexts(struct tx *tx, const char *host, const char *federated_id,
    struct rows *contexts, struct err *err)
{
	return sql_many(tx, &SQL_sync_contexts, context_shape, contexts, err,
	    v_text(host), v_text(federated_id));
}

/* ---- messages ---- */

/* Conversations and people of the messages that are still there. */
struct needs {
	int64_t *messages;
	int64_t *conversations;
	int64_t *people;
	size_t count;
};

static struct needs needs_of(struct arena *arena, const struct rows *rows)
{
	const struct sync_row *all = rows->items;
	struct needs needs = {
		.messages = arena_array(arena, rows->count, sizeof(int64_t)),
		.conversations =
		    arena_array(arena, rows->count, sizeof(int64_t)),
		.people = arena_array(arena, rows->count, sizeof(int64_t)),
	};

	for (size_t i = 0; i < rows->count; i++) {
		if (!all[i].message_id)
			continue;
		needs.messages[needs.count] = all[i].message_id;
		needs.conversations[needs.count] = all[i].dm_channel_id;
		needs.people[needs.count++] = all[i].user_id;
	}
	return needs;
}

static bool people_read(struct tx *tx, const struct needs *needs,
    struct sync_page *page, struct err *err)
{
	const struct sync_place *places = page->places.items;
	size_t count = page->places.count + needs->count;
	int64_t *ids = arena_array(tx_arena(tx), count, sizeof(*ids));

	for (size_t i = 0; i < page->places.count; i++)
		ids[i] = places[i].user_id;
	memcpy(ids + page->places.count, needs->people,
	    needs->count * sizeof(*ids));
	return outbox_people(tx, ids, count, &page->people, err);
}

static bool messages_read(
    struct tx *tx, struct sync_page *page, struct err *err)
{
	struct needs needs = needs_of(tx_arena(tx), &page->rows);

	if (needs.count == 0)
		return true;
	return sql_many(tx, &SQL_sync_places, place_shape, &page->places, err,
		   v_ids(needs.conversations, needs.count)) &&
	    people_read(tx, &needs, page, err) &&
	    attachments_of(tx, needs.messages, needs.count, &page->files, err);
}

/* ---- reactions to messages that were born elsewhere ---- */

struct births {
	const char **origins;
	const char **ids;
	int64_t *places; /* of the row, from 1 */
	size_t count;
};

struct local_id {
	int64_t place;
	int64_t id;
};

static const struct shape local_id_shape[] = {
	SHAPE(INT, struct local_id, place, NULL),
	SHAPE(ID, struct local_id, id, NULL),
	SHAPE_END(struct local_id),
};

static void birth_add(struct arena *arena, const struct node *node,
    const struct sync_row *row, int64_t place, struct births *births)
{
	struct sync_members payload = sync_members_of(
	    arena, (struct bytes){ row->payload, strlen(row->payload) });
	const struct sync_member *reaction =
	    sync_member_find(&payload, "reaction");
	struct sync_members members;
	const char *home;

	if (!reaction)
		return;
	members = sync_members_of(arena, reaction->value);
	home = sync_member_text(
	    arena, sync_member_find(&members, "messageHomeInstance"));
	if (!home || strcmp(home, node->origin.text) == 0)
		return;
	births->origins[births->count] = home;
	births->ids[births->count] =
	    sync_member_text(arena, sync_member_find(&members, "messageId"));
	births->places[births->count++] = place;
}

static bool reactions_read(struct tx *tx, const struct node *node,
    struct sync_page *page, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct sync_row *rows = page->rows.items;
	size_t count = page->rows.count;
	struct births births = {
		.origins = arena_array(arena, count, sizeof(char *)),
		.ids = arena_array(arena, count, sizeof(char *)),
		.places = arena_array(arena, count, sizeof(int64_t)),
	};
	struct rows found = { 0 };
	const struct local_id *local;

	for (size_t i = 0; i < count; i++)
		if (rows[i].payload &&
		    strncmp(rows[i].event_type, "reaction_", 9) == 0)
			birth_add(
			    arena, node, &rows[i], (int64_t)i + 1, &births);
	if (births.count &&
	    !sql_many(tx, &SQL_sync_local_ids, local_id_shape, &found, err,
		v_texts(births.origins, births.count),
		v_texts(births.ids, births.count),
		v_ids(births.places, births.count)))
		return false;
	local = found.items;
	for (size_t i = 0; i < found.count; i++)
		rows[local[i].place - 1].local_id = id_text(arena, local[i].id);
	return true;
}

/* ---- a page ---- */

static bool rows_read(struct tx *tx, const struct sync_reach *reach,
    struct rows *rows, struct err *err)
{
	const struct sync_context *contexts;
	const char **ids;

	if (!reach->contexts)
		return sql_many(tx, &SQL_sync_page, row_shape, rows, err,
		    v_text(reach->host), v_text(reach->context_type),
		    v_int(reach->since), v_int(reach->limit));
	contexts = reach->contexts->items;
	ids = arena_array(tx_arena(tx), reach->contexts->count, sizeof(*ids));
	for (size_t i = 0; i < reach->contexts->count; i++)
		ids[i] = contexts[i].id;
	return sql_many(tx, &SQL_sync_page_of, row_shape, rows, err,
	    v_text(reach->host), v_text(reach->context_type),
	    v_int(reach->since), v_int(reach->limit),
	    v_texts(ids, reach->contexts->count));
}

bool sync_page_read(struct tx *tx, const struct sync_reach *reach,
    struct sync_page *page, struct err *err)
{
	*page = (struct sync_page){ .rows = { 0 } };
	return sql_none(tx, &SQL_sync_by_index, err) &&
	    rows_read(tx, reach, &page->rows, err) &&
	    messages_read(tx, page, err) &&
	    reactions_read(tx, reach->node, page, err);
}

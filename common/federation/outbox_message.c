#include <math.h>

#include "common/federation/outbox_message.h"

#include "common/base/id.h"
#include "common/chat/attachment.h"
#include "common/federation/outbox_profile.h"
#include "common/federation/typing_send.h"

#include "common/federation/outbox_message.sql.h"

/* ---- its files ---- */

static void put_file(struct json_out *out, struct arena *arena,
    const struct node *node, const struct attachment *file)
{
	json_open(out, NULL);
	json_put_id(out, "id", file->id);
	json_put_text(out, "filename", file->filename);
	json_put_text(out, "originalName", file->original_name);
	json_put_text(out, "mimetype", file->mimetype);
	json_put_int(out, "size", file->size);
	if (isfinite(file->width))
		json_put_real(out, "width", file->width);
	if (isfinite(file->height))
		json_put_real(out, "height", file->height);
	if (isfinite(file->duration))
		json_put_real(out, "duration", file->duration);
	if (file->thumbnail_filename)
		json_put_text(
		    out, "thumbnailFilename", file->thumbnail_filename);
	json_put_text(out, "sourceUrl",
	    arena_printf(
		arena, "%s/api/uploads/%s", node->origin.text, file->filename));
	json_close(out);
}

static void put_files(struct json_out *out, struct arena *arena,
    const struct node *node, const struct rows *files)
{
	const struct attachment *all = files->items;

	if (files->count == 0)
		return;
	json_open_list(out, "attachments");
	for (size_t i = 0; i < files->count; i++)
		put_file(out, arena, node, &all[i]);
	json_close_list(out);
}

/* ---- what it says, in the recorded order ---- */

struct place {
	const char *federated_id;
	bool is_group;
	bool to_all;
	bool was_typing; /* others still show it */
	bool is_new;	 /* a pair that others hear of for the first time */
};

static const struct shape place_shape[] = {
	SHAPE(TEXT, struct place, federated_id, NULL),
	SHAPE(BOOL, struct place, is_group, NULL),
	SHAPE(BOOL, struct place, to_all, NULL),
	SHAPE(BOOL, struct place, was_typing, NULL),
	SHAPE_END(struct place),
};

struct entry {
	const struct node *node;
	const struct message *message;
	struct place place;
	struct rows people;
	const struct outbox_person *author;
	struct rows files;
};

/* What came homeward and is sent on: its name where it was written. */
static void put_written(struct json_out *out, const struct message *message)
{
	if (!message->source_instance)
		return;
	json_open(out, "writtenAt");
	json_put_text(out, "homeInstance", message->source_instance);
	json_put_text(out, "messageId", message->source_message_id);
	json_close(out);
}

void put_message(struct json_out *out, struct arena *arena,
    const struct node *node, const struct message *message,
    const struct outbox_person *author, const struct rows *files)
{
	json_open(out, "message");
	json_put_id(out, "userId", author->id);
	json_put_text(out, "homeUserId", person_home_id(arena, author));
	json_put_text(out, "homeInstance", person_instance(node, author));
	json_put_text(out, "content", message->content);
	json_put_id(out, "replyToId", message->reply_to_id);
	json_put_time(out, "editedAt", message->edited_at);
	json_put_int(out, "createdAt", message->created_at);
	put_files(out, arena, node, files);
	put_written(out, message);
	json_close(out);
}

static const char *payload(
    struct arena *arena, const struct entry *entry, bool whole)
{
	struct json_out out;
	struct buf text;

	payload_open(&out, &text, arena);
	json_put_id(&out, "dmChannelId", entry->message->dm_channel_id);
	if (whole) {
		if (entry->place.is_group)
			json_put_text(
			    &out, "federatedId", entry->place.federated_id);
		put_participants(&out, arena, entry->node, &entry->people);
		put_message(&out, arena, entry->node, entry->message,
		    entry->author, &entry->files);
	}
	return payload_close(&out);
}

static bool add_named(struct tx *tx, const struct entry *entry,
    const struct targets *targets, const char *event_type, const char *name,
    struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const struct message *message = entry->message;
	bool by_birth = name != NULL;
	struct outbox_event event = {
		.event_type = event_type,
		.context_type = "dm",
		.context_id = id_text(arena, message->dm_channel_id),
		.entity_id = by_birth ? name : id_text(arena, message->id),
		.payload = "",
		.to_all = entry->place.to_all &&
		    !entry->author->home_instance && !by_birth,
		.is_message = true,
		.homeward = entry->author->home_instance != NULL,
		.unlogged = by_birth,
	};

	/* Without targets it is for the log only, which keeps no payload. */
	if (targets->count || event.to_all)
		event.payload =
		    payload(arena, entry, strcmp(event_type, "delete") != 0);
	return outbox_add(tx, &event, targets, err);
}

/*
 * The node where a message was written does not know our id of it: there its
 * own names it. (A person with accounts on both has written it on the one and
 * changes it on the other.)
 */
static bool add(struct tx *tx, struct entry *entry, struct targets *targets,
    const char *event_type, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const struct message *message = entry->message;
	const char *birth = message->source_instance;
	struct targets there;
	int port;

	if (targets->count && strcmp(event_type, "delete") != 0 &&
	    !attachments_of(tx, &message->id, 1, &entry->files, err))
		return false;
	if (birth && strcmp(event_type, "create") != 0 &&
	    targets_take(targets, instance_host(arena, birth, &port), &there) &&
	    !add_named(
		tx, entry, &there, event_type, message->source_message_id, err))
		return false;
	return add_named(tx, entry, targets, event_type, NULL, err);
}

/* Who is told of a pair for the first time must find it by its id later. */
static bool place_find(struct tx *tx, struct entry *entry,
    const struct targets *targets, const char *event_type, struct err *err)
{
	const struct message *message = entry->message;
	struct place *place = &entry->place;

	if (!sql_one(tx, &SQL_outbox_place, place_shape, place, err,
		v_id(message->dm_channel_id), v_id(message->user_id),
		v_bool(strcmp(event_type, "create") == 0)))
		return false;
	place->is_new =
	    !place->is_group && !place->federated_id && targets->count > 0;
	return !place->is_new ||
	    outbox_name_pair(tx, message->dm_channel_id, &entry->people,
		&place->federated_id, err);
}

/* Before the message, as everybody does. */
static bool typing_ends(struct tx *tx, const struct entry *entry,
    const struct targets *targets, struct err *err)
{
	const struct typing_news news = {
		.node = entry->node,
		.people = &entry->people,
		.person = entry->author,
		.targets = targets,
		.federated_id = entry->place.federated_id,
	};

	return !entry->place.was_typing || targets->count == 0 ||
	    typing_tell(tx, &news, err);
}

static bool has_accounts(const struct outbox_person *person)
{
	return !person->home_instance &&
	    strcmp(person->replicated_instances, "[]") != 0;
}

/* The home of whom a pair is new to has to know where else to tell. */
static bool tell_accounts(
    struct tx *tx, const struct entry *entry, struct err *err)
{
	const struct outbox_person *people = entry->people.items;
	bool any = false;

	for (size_t i = 0; i < entry->people.count; i++)
		any |= has_accounts(&people[i]);
	return !any ||
	    outbox_tell_accounts(
		tx, entry->node, &entry->message->dm_channel_id, 1, err);
}

bool outbox_add_message(struct tx *tx, const struct node *node,
    const char *event_type, const struct message *message,
    const char *except_host, struct err *err)
{
	struct entry entry = { .node = node, .message = message };
	struct targets targets;

	if (!outbox_members(tx, message->dm_channel_id, &entry.people, err))
		return false;
	entry.author = outbox_person_find(&entry.people, message->user_id);
	if (!entry.author)
		return err_set(err, ERR_FORBIDDEN,
		    "You are not a member of this DM channel");
	targets_init(&targets, tx_arena(tx), node, except_host);
	targets_add_for(&targets, entry.author, &entry.people);
	if (!place_find(tx, &entry, &targets, event_type, err))
		return false;
	if (entry.place.is_group && !entry.place.federated_id)
		return true; /* nobody elsewhere knows it */
	return typing_ends(tx, &entry, &targets, err) &&
	    add(tx, &entry, &targets, event_type, err) &&
	    (!entry.place.is_new || tell_accounts(tx, &entry, err));
}

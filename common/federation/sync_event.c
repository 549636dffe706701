#include "common/federation/sync_event.h"

#include "common/chat/attachment.h"
#include "common/federation/outbox_message.h"
#include "common/federation/sync_members.h"

/* What is told of one row. */
struct telling {
	struct arena *arena;
	const struct node *node;
	const struct sync_page *page;
	const struct sync_row *row;
	const char *federated_id;	    /* of a group, or NULL */
	const struct outbox_person *author; /* of a message */
	struct sync_members members;	    /* of the payload */
};

static void put_member(
    struct json_out *out, struct arena *arena, const struct sync_member *member)
{
	json_put_raw(out,
	    arena_textn(arena, member->name.data, member->name.len),
	    member->value);
}

static bool is_reaction(const struct sync_row *row)
{
	return strncmp(row->event_type, "reaction_", 9) == 0;
}

/* ---- messages, as they are now ---- */

static void place_find(struct telling *telling)
{
	const struct sync_place *all = telling->page->places.items;

	for (size_t i = 0; i < telling->page->places.count; i++)
		if (all[i].conversation == telling->row->dm_channel_id) {
			telling->federated_id = all[i].federated_id;
			return;
		}
}

static void put_members(struct json_out *out, const struct telling *telling)
{
	const struct sync_place *all = telling->page->places.items;
	const struct outbox_person *person;

	json_open_list(out, "participants");
	for (size_t i = 0; i < telling->page->places.count; i++) {
		if (all[i].conversation != telling->row->dm_channel_id)
			continue;
		person =
		    outbox_person_find(&telling->page->people, all[i].user_id);
		if (person)
			put_participant(
			    out, NULL, telling->arena, telling->node, person);
	}
	json_close_list(out);
}

static struct rows files_of(const struct telling *telling)
{
	struct attachment *all = telling->page->files.items;
	struct rows files = { 0 };

	for (size_t i = 0; i < telling->page->files.count; i++) {
		if (all[i].dm_message_id != telling->row->message_id)
			continue;
		if (files.count++ == 0)
			files.items = &all[i];
	}
	return files;
}

static void put_current(struct json_out *out, const struct telling *telling)
{
	const struct sync_row *row = telling->row;
	const struct message message = {
		.id = row->message_id,
		.dm_channel_id = row->dm_channel_id,
		.user_id = row->user_id,
		.reply_to_id = row->reply_to_id,
		.content = row->content,
		.edited_at = row->edited_at,
		.created_at = row->created_at,
		.source_instance = row->source_instance,
		.source_message_id = row->source_message_id,
	};
	struct rows files = files_of(telling);

	put_members(out, telling);
	put_message(out, telling->arena, telling->node, &message,
	    telling->author, &files);
}

/* ---- reactions ---- */

static bool is_native_message(
    const struct telling *telling, const struct sync_members *reaction)
{
	const char *home = sync_member_text(
	    telling->arena, sync_member_find(reaction, "messageHomeInstance"));

	return !home || strcmp(home, telling->node->origin.text) == 0;
}

static struct sync_members reaction_of(const struct telling *telling)
{
	const struct sync_member *reaction =
	    sync_member_find(&telling->members, "reaction");

	return reaction ? sync_members_of(telling->arena, reaction->value)
			: (struct sync_members){ NULL, 0 };
}

/*
 * The event's id is our id of the message. Where that says it all, the reaction
 * does not say it again; of a message that was born elsewhere it must.
 */
static void put_reaction(struct json_out *out, const struct telling *telling)
{
	struct sync_members reaction = reaction_of(telling);
	bool is_native = is_native_message(telling, &reaction);

	json_open(out, "reaction");
	for (size_t i = 0; i < reaction.count; i++) {
		const struct sync_member *member = &reaction.list[i];

		if (!is_native ||
		    (!sync_member_is(member, "messageId") &&
			!sync_member_is(member, "messageHomeInstance")))
			put_member(out, telling->arena, member);
	}
	if (!sync_member_find(&reaction, "createdAt"))
		json_put_int(out, "createdAt", telling->row->at);
	json_close(out);
}

static const char *reaction_message(const struct telling *telling)
{
	struct sync_members reaction = reaction_of(telling);
	const char *id = telling->row->local_id;

	if (!id)
		id = sync_member_text(
		    telling->arena, sync_member_find(&reaction, "messageId"));
	return id ? id : telling->row->entity_id;
}

/* ---- everything else: the payload's members as they are ---- */

static void put_rest(struct json_out *out, const struct telling *telling,
    const char *told_already)
{
	for (size_t i = 0; i < telling->members.count; i++) {
		const struct sync_member *member = &telling->members.list[i];

		if (!sync_member_is(member, "dmChannelId") &&
		    !sync_member_is(member, told_already))
			put_member(out, telling->arena, member);
	}
}

/* ---- forms ---- */

static void put_end(struct json_out *out, const struct telling *telling)
{
	json_put_int(
	    out, "encryptionVersion", telling->row->encryption_version);
	json_put_int(out, "timestamp", telling->row->at);
}

static void put_message_event(
    struct json_out *out, const struct telling *telling)
{
	if (telling->federated_id)
		json_put_text(out, "federatedId", telling->federated_id);
	json_put_text(out, "dmChannelId", telling->row->context_id);
	json_put_text(out, "messageId", telling->row->entity_id);
	put_end(out, telling);
	put_current(out, telling);
}

/* delete, reactions, file_rejected */
static void put_bare_event(struct json_out *out, const struct telling *telling)
{
	json_put_text(out, "dmChannelId", telling->row->context_id);
	json_put_text(out, "messageId",
	    is_reaction(telling->row) ? reaction_message(telling)
				      : telling->row->entity_id);
	put_end(out, telling);
	if (is_reaction(telling->row))
		put_reaction(out, telling);
	else
		put_rest(out, telling, "");
}

/* read states and the like: the conversation's id before the version */
static void put_state_event(struct json_out *out, const struct telling *telling)
{
	const struct sync_member *federated_id =
	    sync_member_find(&telling->members, "federatedId");

	json_put_text(out, "dmChannelId", telling->row->context_id);
	json_put_text(out, "messageId", telling->row->entity_id);
	if (federated_id)
		put_member(out, telling->arena, federated_id);
	put_end(out, telling);
	put_rest(out, telling, "federatedId");
}

static void put_whole_event(struct json_out *out, const struct telling *telling)
{
	const struct sync_row *row = telling->row;

	json_put_text(out, "contextType", row->context_type);
	if (strcmp(row->context_type, "dm") == 0)
		json_put_text(out, "dmChannelId", row->context_id);
	json_put_text(out, "messageId", row->entity_id);
	put_end(out, telling);
	put_rest(out, telling, "");
}

struct form {
	const char *event_type;
	void (*put)(struct json_out *out, const struct telling *telling);
};

/* clang-format off */
static const struct form forms[] = {
	{ "create",            put_message_event },
	{ "update",            put_message_event },
	{ "delete",            put_bare_event },
	{ "reaction_add",      put_bare_event },
	{ "reaction_remove",   put_bare_event },
	{ "file_rejected",     put_bare_event },
	{ "read_state_update", put_state_event },
	{ "dm_close",          put_state_event },
	{ "dm_reopen",         put_state_event },
	{ NULL,                put_whole_event },
};
/* clang-format on */

static const struct form *form_of(const char *event_type)
{
	const struct form *form = forms;

	while (form->event_type && strcmp(form->event_type, event_type) != 0)
		form++;
	return form;
}

bool sync_event_put(struct json_out *out, struct arena *arena,
    const struct node *node, const struct sync_page *page,
    const struct sync_row *row)
{
	const struct form *form = form_of(row->event_type);
	struct telling telling = {
		.arena = arena,
		.node = node,
		.page = page,
		.row = row,
	};

	if (form->put == put_message_event) {
		telling.author = row->message_id
		    ? outbox_person_find(&page->people, row->user_id)
		    : NULL;
		if (!telling.author)
			return false;
		place_find(&telling);
	}
	if (row->payload)
		telling.members = sync_members_of(arena,
		    (struct bytes){ row->payload, strlen(row->payload) });
	json_open(out, NULL);
	json_put_text(out, "eventType", row->event_type);
	form->put(out, &telling);
	json_close(out);
	return true;
}

#include <math.h>

#include "common/federation/outbox.h"

#include "common/base/id.h"
#include "common/base/log.h"
#include "common/chat/attachment.h"
#include "common/federation/person.h"
#include "common/pg/notify.h"

#include "common/federation/outbox.sql.h"

enum { PAYLOAD_MAX = 1 << 20, HOSTS_MAX = 256 };

struct outbox_person {
	int64_t id;
	const char *username;
	const char *display_name;
	const char *avatar;
	const char *avatar_color;
	const char *home_instance;
	const char *home_user_id;
	bool is_deleted;
	const char *replicated_instances;
	bool is_group;
	const char *federated_id;
	bool enabled;
	bool to_all;
};

/* clang-format off */
static const struct shape person_shape[] = {
	SHAPE(ID,   struct outbox_person, id, NULL),
	SHAPE(TEXT, struct outbox_person, username, "username"),
	SHAPE(TEXT, struct outbox_person, display_name, "displayName"),
	SHAPE(TEXT, struct outbox_person, avatar, "avatar"),
	SHAPE(TEXT, struct outbox_person, avatar_color, "avatarColor"),
	SHAPE(TEXT, struct outbox_person, home_instance, NULL),
	SHAPE(TEXT, struct outbox_person, home_user_id, NULL),
	SHAPE(BOOL, struct outbox_person, is_deleted, NULL),
	SHAPE(TEXT, struct outbox_person, replicated_instances, NULL),
	SHAPE(BOOL, struct outbox_person, is_group, NULL),
	SHAPE(TEXT, struct outbox_person, federated_id, NULL),
	SHAPE(BOOL, struct outbox_person, enabled, NULL),
	SHAPE(BOOL, struct outbox_person, to_all, NULL),
	SHAPE_END(struct outbox_person),
};

struct told {
	const char *host;
};

static const struct shape told_shape[] = {
	SHAPE(TEXT, struct told, host, NULL),
	SHAPE_END(struct told),
};
/* clang-format on */

/* ---- who gets it ---- */

struct targets {
	const char *ours;
	const char *except;
	const char *hosts[HOSTS_MAX];
	size_t count;
};

static void target_add(void *arg, const char *host, int port)
{
	struct targets *targets = arg;

	(void)port;
	if (strcmp(host, targets->ours) == 0 ||
	    (targets->except && strcmp(host, targets->except) == 0) ||
	    targets->count == HOSTS_MAX)
		return;
	for (size_t i = 0; i < targets->count; i++)
		if (strcmp(targets->hosts[i], host) == 0)
			return;
	targets->hosts[targets->count++] = host;
}

static const struct outbox_person *author_of(
    const struct rows *people, int64_t user)
{
	const struct outbox_person *all = people->items;

	for (size_t i = 0; i < people->count; i++)
		if (all[i].id == user)
			return &all[i];
	return NULL;
}

/*
 * Only the author's home tells the others. An account that is at home
 * elsewhere is told to its home (homeward), which does the rest.
 */
static void targets_find(struct arena *arena, struct targets *targets,
    const struct rows *people, const struct outbox_person *author)
{
	const struct outbox_person *all = people->items;

	if (author->home_instance) {
		target_add(targets, author->home_instance, 0);
		return;
	}
	for (size_t i = 0; i < people->count; i++) {
		if (all[i].is_deleted)
			continue;
		if (all[i].home_instance)
			target_add(targets, all[i].home_instance, 0);
		instances_each(
		    arena, all[i].replicated_instances, target_add, targets);
	}
}

/* ---- what it says ---- */

static const char *instance_of(
    const struct node *node, const struct outbox_person *person)
{
	return person->home_instance ? person->home_instance
				     : node->origin.text;
}

static const char *id_of(
    struct arena *arena, const struct outbox_person *person)
{
	return person->home_user_id ? person->home_user_id
				    : id_text(arena, person->id);
}

static void put_participant(struct json_out *out, struct arena *arena,
    const struct node *node, const struct outbox_person *person)
{
	const struct outbox_person gone = { .username = "Deleted User" };

	json_open(out, NULL);
	json_put_text(out, "homeUserId", id_of(arena, person));
	json_put_text(out, "homeInstance", instance_of(node, person));
	json_put_shape(
	    out, "profile", person_shape, person->is_deleted ? &gone : person);
	json_close(out);
}

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

/* Members of one event in the recorded order. */
struct entry {
	const struct node *node;
	const struct message *message;
	struct rows people;
	const struct outbox_person *author;
	struct rows files;
};

static void put_message(
    struct json_out *out, struct arena *arena, const struct entry *entry)
{
	const struct message *message = entry->message;
	const struct outbox_person *author = entry->author;

	json_open(out, "message");
	json_put_id(out, "userId", author->id);
	json_put_text(out, "homeUserId", id_of(arena, author));
	json_put_text(out, "homeInstance", instance_of(entry->node, author));
	json_put_text(out, "content", message->content);
	json_put_id(out, "replyToId", message->reply_to_id);
	json_put_time(out, "editedAt", message->edited_at);
	json_put_int(out, "createdAt", message->created_at);
	put_files(out, arena, entry->node, &entry->files);
	json_close(out);
}

static void put_people(
    struct json_out *out, struct arena *arena, const struct entry *entry)
{
	const struct outbox_person *people = entry->people.items;

	if (people[0].is_group && people[0].federated_id)
		json_put_text(out, "federatedId", people[0].federated_id);
	json_open_list(out, "participants");
	for (size_t i = 0; i < entry->people.count; i++)
		put_participant(out, arena, entry->node, &people[i]);
	json_close_list(out);
}

/* An object without its braces. */
static const char *payload(
    struct arena *arena, const struct entry *entry, bool whole)
{
	struct buf text;
	struct json_out out = { .buf = &text };

	buf_init(&text, arena, PAYLOAD_MAX);
	json_open(&out, NULL);
	json_put_id(&out, "dmChannelId", entry->message->dm_channel_id);
	if (whole) {
		put_people(&out, arena, entry);
		put_message(&out, arena, entry);
	}
	json_close(&out);
	assert(buf_ok(&text));
	return arena_textn(arena, text.data + 1, text.len - 2);
}

/* ---- */

static bool was_told(const struct rows *told, const char *host)
{
	const struct told *all = told->items;

	for (size_t i = 0; i < told->count; i++)
		if (strcmp(all[i].host, host) == 0)
			return true;
	return false;
}

static void log_untold(
    const struct targets *targets, const struct rows *told, int64_t message)
{
	for (size_t i = 0; i < targets->count; i++)
		if (!was_told(told, targets->hosts[i]))
			log_warn("outbox.no_peer",
			    F("peer", v_text(targets->hosts[i])),
			    F("entry", v_id(message)));
}

static bool add(struct tx *tx, const struct entry *entry,
    const struct targets *targets, const char *event_type, struct err *err)
{
	const struct message *message = entry->message;
	const struct outbox_person *people = entry->people.items;
	bool to_all = people[0].to_all && !entry->author->home_instance;
	bool whole = strcmp(event_type, "delete") != 0;
	struct rows told;

	if (targets->count == 0 && !to_all)
		return true;
	if (!sql_many(tx, &SQL_outbox_add, told_shape, &told, err,
		v_texts(targets->hosts, targets->count), v_bool(to_all),
		v_text(targets->except), v_id(message->dm_channel_id),
		v_text(event_type), v_id(message->id),
		v_text(payload(tx_arena(tx), entry, whole))))
		return false;
	log_untold(targets, &told, message->id);
	if (told.count)
		signal_outbox(tx);
	return true;
}

bool outbox_add_message(struct tx *tx, const struct node *node,
    const char *event_type, const struct message *message,
    const char *except_host, struct err *err)
{
	struct targets *targets = ARENA_NEW(tx_arena(tx), struct targets);
	struct entry entry = { .node = node, .message = message };
	const struct outbox_person *people;

	if (!sql_many(tx, &SQL_outbox_people, person_shape, &entry.people, err,
		v_id(message->dm_channel_id)))
		return false;
	people = entry.people.items;
	entry.author = author_of(&entry.people, message->user_id);
	if (!entry.author || !people[0].enabled)
		return true;
	targets->ours = node->origin.host;
	targets->except = except_host;
	targets_find(tx_arena(tx), targets, &entry.people, entry.author);
	if (targets->count == 0 && !people[0].to_all)
		return true;
	return attachments_of(tx, &message->id, 1, &entry.files, err) &&
	    add(tx, &entry, targets, event_type, err);
}

#include "common/federation/outbox_people.h"

#include "common/base/id.h"
#include "common/chat/channel.h"

#include "common/federation/outbox_people.sql.h"

/* clang-format off */
static const struct shape person_shape[] = {
	SHAPE(ID,   struct outbox_person, id, NULL),
	SHAPE(TEXT, struct outbox_person, username, "username"),
	SHAPE(TEXT, struct outbox_person, display_name, "displayName"),
	SHAPE(TEXT, struct outbox_person, avatar, "avatar"),
	SHAPE(TEXT, struct outbox_person, banner, NULL),
	SHAPE(TEXT, struct outbox_person, avatar_color, "avatarColor"),
	SHAPE(TEXT, struct outbox_person, bio, NULL),
	SHAPE(TEXT, struct outbox_person, home_instance, NULL),
	SHAPE(TEXT, struct outbox_person, home_user_id, NULL),
	SHAPE(BOOL, struct outbox_person, is_deleted, NULL),
	SHAPE(TEXT, struct outbox_person, replicated_instances, NULL),
	SHAPE_END(struct outbox_person),
};
/* clang-format on */

bool outbox_members(
    struct tx *tx, int64_t conversation, struct rows *people, struct err *err)
{
	return sql_many(tx, &SQL_outbox_members, person_shape, people, err,
	    v_id(conversation));
}

bool outbox_people(struct tx *tx, const int64_t *ids, size_t count,
    struct rows *people, struct err *err)
{
	return sql_many(tx, &SQL_outbox_people, person_shape, people, err,
	    v_ids(ids, count));
}

const struct outbox_person *outbox_person_find(
    const struct rows *people, int64_t id)
{
	const struct outbox_person *all = people->items;

	for (size_t i = 0; i < people->count; i++)
		if (all[i].id == id)
			return &all[i];
	return NULL;
}

const char *person_home_id(
    struct arena *arena, const struct outbox_person *person)
{
	return person->home_user_id ? person->home_user_id
				    : id_text(arena, person->id);
}

bool outbox_name_pair(struct tx *tx, int64_t conversation,
    const struct rows *people, const char **federated_id, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const struct outbox_person *all = people->items;
	char *id = arena_alloc(arena, FEDERATED_ID_SIZE);

	if (people->count == 0)
		return err_set(err, ERR_BUG, "a pair of nobody");
	federated_id_of_pair(person_home_id(arena, &all[0]),
	    person_home_id(arena, &all[people->count - 1]), id);
	*federated_id = id;
	return channel_name_pair(tx, conversation, id, err);
}

/* ---- what is said of them ---- */

const char *person_instance(
    const struct node *node, const struct outbox_person *person)
{
	return person->home_instance ? person->home_instance
				     : node->origin.text;
}

static void put_who(struct json_out *out, struct arena *arena,
    const struct node *node, const struct outbox_person *person)
{
	json_put_text(out, "homeUserId", person_home_id(arena, person));
	json_put_text(out, "homeInstance", person_instance(node, person));
}

void put_identity(struct json_out *out, const char *name, struct arena *arena,
    const struct node *node, const struct outbox_person *person)
{
	json_open(out, name);
	put_who(out, arena, node, person);
	json_close(out);
}

static const struct outbox_person *shown(const struct outbox_person *person)
{
	static const struct outbox_person gone = { .username = "Deleted User" };

	return person->is_deleted ? &gone : person;
}

void put_snapshot(
    struct json_out *out, const char *name, const struct outbox_person *person)
{
	const struct outbox_person *who = shown(person);

	json_open(out, name);
	json_put_text(out, "username", who->username);
	json_put_text(out, "displayName", who->display_name);
	json_put_text(out, "avatar", who->avatar);
	json_put_text(out, "avatarColor", who->avatar_color);
	json_put_text(out, "banner", who->banner);
	json_put_text(out, "bio", who->bio);
	json_close(out);
}

void put_participant(struct json_out *out, const char *name,
    struct arena *arena, const struct node *node,
    const struct outbox_person *person)
{
	json_open(out, name);
	put_who(out, arena, node, person);
	json_put_shape(out, "profile", person_shape, shown(person));
	json_close(out);
}

void put_participants(struct json_out *out, struct arena *arena,
    const struct node *node, const struct rows *people)
{
	const struct outbox_person *all = people->items;

	json_open_list(out, "participants");
	for (size_t i = 0; i < people->count; i++)
		put_participant(out, NULL, arena, node, &all[i]);
	json_close_list(out);
}

void targets_add_people(struct targets *targets, const struct rows *people)
{
	const struct outbox_person *all = people->items;

	for (size_t i = 0; i < people->count; i++) {
		if (all[i].is_deleted)
			continue;
		targets_add(targets, all[i].home_instance);
		targets_add_declared(targets, all[i].replicated_instances);
	}
}

void targets_add_for(struct targets *targets, const struct outbox_person *actor,
    const struct rows *people)
{
	if (actor->home_instance)
		targets_add(targets, actor->home_instance);
	else
		targets_add_people(targets, people);
}

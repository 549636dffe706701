/*
 * outbox_people -- people as other nodes are told of them.
 *
 * Whoever is native has our origin as his instance and his id here as home
 * user id. A deleted person shows nothing but a fixed name.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_OUTBOX_PEOPLE_H
#define POSTRIDER_OUTBOX_PEOPLE_H

#include "common/federation/outbox.h"

struct outbox_person {
	int64_t id;
	const char *username;
	const char *display_name;
	const char *avatar;
	const char *banner;
	const char *avatar_color;
	const char *bio;
	const char *home_instance; /* NULL: native */
	const char *home_user_id;
	bool is_deleted;
	const char *replicated_instances;
};

/* In id order. */
MUST_CHECK bool outbox_members(
    struct tx *tx, int64_t conversation, struct rows *people, struct err *err);
MUST_CHECK bool outbox_people(struct tx *tx, const int64_t *ids, size_t count,
    struct rows *people, struct err *err);
/* One of them; NULL: not among them. */
const struct outbox_person *outbox_person_find(
    const struct rows *people, int64_t id);

/* homeInstance and homeUserId as we say them. */
const char *person_instance(
    const struct node *node, const struct outbox_person *person);
const char *person_home_id(
    struct arena *arena, const struct outbox_person *person);

/* {homeUserId, homeInstance}, and with profile {..., profile: {username,
 * displayName, avatar, avatarColor}}. */
void put_identity(struct json_out *out, const char *name, struct arena *arena,
    const struct node *node, const struct outbox_person *person);
void put_participant(struct json_out *out, const char *name,
    struct arena *arena, const struct node *node,
    const struct outbox_person *person);
/* "participants" of all of them. */
void put_participants(struct json_out *out, struct arena *arena,
    const struct node *node, const struct rows *people);

/* The federated id of a pair that had none, by its people; kept from now on,
 * so that what comes homeward about it finds it. */
MUST_CHECK bool outbox_name_pair(struct tx *tx, int64_t conversation,
    const struct rows *people, const char **federated_id, struct err *err);

/* What a friend is shown: {username, displayName, avatar, avatarColor, banner,
 * bio}. */
void put_snapshot(
    struct json_out *out, const char *name, const struct outbox_person *person);

/* Their homes, and where they have declared accounts; nobody deleted. */
void targets_add_people(struct targets *targets, const struct rows *people);
/* Whom we tell what one of these people did: an account that is at home
 * elsewhere is told to its home (homeward), which does the rest. */
void targets_add_for(struct targets *targets, const struct outbox_person *actor,
    const struct rows *people);

#endif

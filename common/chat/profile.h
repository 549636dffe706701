/*
 * profile -- a person's profile: changing it, and who hears of it.
 *
 * The six durable fields belong to the person's home and have one version,
 * profile_updated_at, which only grows. Whoever shares a friendship or a
 * conversation with a person, and he himself, is told of a change; all of them
 * are locked first, in id order.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_PROFILE_H
#define POSTRIDER_PROFILE_H

#include "common/chat/user.h"

/* Who hears of whom. */
struct listener {
	int64_t person;
	int64_t listener;
};
MUST_CHECK bool profiles_listeners(struct tx *tx, const int64_t *people,
    size_t count, struct rows *listeners, struct err *err);
/* Tells the listeners of these people about kind: user_updated,
 * presence_update. */
MUST_CHECK bool profiles_tell(struct tx *tx, const struct rows *listeners,
    const int64_t *people, size_t count, const char *kind, struct err *err);

/* What a person changes of himself; values are checked. */
struct text_edit {
	bool given;
	const char *value; /* NULL: cleared */
};
struct flag_edit {
	bool given;
	bool value;
};
struct profile_edit {
	struct text_edit display_name, avatar, banner, accent_color,
	    avatar_color, bio;
	struct text_edit custom_status, status;
	struct text_edit replicated_instances; /* JSON text */
	struct text_edit home_user_id;
	struct flag_edit discoverable, show_activity;
};
/* Is one of the six durable fields given? */
bool profile_edit_is_durable(const struct profile_edit *edit);

/* after is how it stands then; *durable: a durable value differs from before.
 * before is filled under the lock. */
MUST_CHECK bool profile_change(struct tx *tx, int64_t person,
    const struct profile_edit *edit, struct user *before, struct user *after,
    bool *durable, struct err *err);

/* What the homes of these people say, a row each; only what is newer counts,
 * and of what they say about accounts what is not older. */
struct profile_said {
	int64_t person;
	int64_t updated_at;
	const char *display_name, *avatar, *banner, *accent_color,
	    *avatar_color, *bio;
	const char *places; /* JSON text; NULL: none */
};
MUST_CHECK bool profiles_replace(struct tx *tx, const struct profile_said *said,
    size_t count, struct err *err);

/* Where they have accounts. Those for whom that changed. */
struct placed {
	int64_t person;
	const char *before, *after; /* replicated_instances */
};
MUST_CHECK bool profiles_place(struct tx *tx, const struct profile_said *said,
    size_t count, struct rows *placed, struct err *err);

/* Friends that two people share, as User objects in JSON text. */
MUST_CHECK bool mutual_friends_json(
    struct tx *tx, int64_t a, int64_t b, const char **json, struct err *err);

#endif

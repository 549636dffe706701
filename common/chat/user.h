/*
 * user -- people: native accounts, stubs, replicated accounts, tombstones.
 *
 * Identity is (home_user_id, home_instance) together; both NULL for native
 * people. A deleted row never resolves. Worker threads; records live in the
 * transaction's arena.
 */
#ifndef POSTRIDER_USER_H
#define POSTRIDER_USER_H

#include "common/pg/sql.h"

/* password_hash of a stub; matches no password. */
#define USER_STUB_PASSWORD "!federation-replicated"

struct user {
	int64_t id;
	const char *username;
	const char *display_name;
	const char *avatar;
	const char *banner;
	const char *accent_color;
	const char *avatar_color;
	const char *bio;
	const char *status;
	const char *custom_status;
	bool is_admin;
	bool discoverable;
	int64_t profile_updated_at;
	int64_t created_at;
	const char *home_instance;
	const char *home_user_id;
	const char *replicated_instances; /* JSON text */
	bool show_activity;
	bool is_deleted;
	const char *password_hash; /* never printed */
};

/* As others see a person; user_write also handles tombstones. */
extern const struct shape user_shape[];

/* The members of a person's object, for one that has more. */
void user_put(struct json_out *out, const struct user *user, bool self);

/* The JSON object of a person (self adds showActivity). */
void user_write(struct buf *out, const struct user *user, bool self);

MUST_CHECK bool user_by_id(
    struct tx *tx, int64_t id, struct user *user, struct err *err);
/* For log-in: living rows only. */
MUST_CHECK bool user_by_name(struct tx *tx, const char *username,
    struct user *user, bool *found, struct err *err);
/* A living person by his id here or, failing that, at his home; 0: nobody. Ids
 * of two homes may be equal: the oldest row counts, so it is good for display
 * only. */
MUST_CHECK bool user_by_any_id(
    struct tx *tx, const char *said, int64_t *id, struct err *err);
/* Records of all these people, as struct user, in no order. */
MUST_CHECK bool users_by_ids(struct tx *tx, const int64_t *ids, size_t count,
    struct rows *users, struct err *err);

/* One of them; must be among users. */
const struct user *users_find(const struct rows *users, int64_t id);

/* A new native account; the first one ever is administrator (serialised by an
 * advisory lock). ERR_CONFLICT "... already taken" when the name is. */
struct registration {
	const char *username;
	const char *display_name;
	const char *password_hash;
	const char *avatar_color;
	const char *home_instance; /* NULL: native */
	const char *home_user_id;
};
/* created is false when a stub was turned into an account. */
MUST_CHECK bool user_register(struct tx *tx, const struct registration *reg,
    struct user *user, bool *created, struct err *err);

/* ERR_CONFLICT when it was changed meanwhile. Every session ends. */
MUST_CHECK bool user_password_change(
    struct tx *tx, const struct user *user, const char *hash, struct err *err);

MUST_CHECK bool user_status_set(
    struct tx *tx, int64_t user, const char *status, struct err *err);
MUST_CHECK bool username_taken(
    struct tx *tx, const char *username, bool *taken, struct err *err);

/* [a-z0-9_]{3,32}; name is already trimmed and lower-cased. */
bool username_is_native(const char *name);
/* name@domain as replicated accounts have it, at most 100 characters. */
bool username_is_replicated(const char *name);
/* One of the palette, a random one for anything else. */
const char *avatar_color_pick(const char *wished);

#endif

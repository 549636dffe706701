#include "common/fediverse/actor.h"

#include "common/fediverse/actor.sql.h"

/* clang-format off */
const struct shape actor_shape[] = {
	SHAPE(TEXT,  struct actor, id, "id"),
	SHAPE(ID,    struct actor, user_id, "userId"),
	SHAPE(TEXT,  struct actor, username, "username"),
	SHAPE(TEXT,  struct actor, kind, "type"),
	SHAPE(TEXT,  struct actor, display_name, "name"),
	SHAPE(BOOL,  struct actor, is_instance, NULL),
	SHAPE(BOOL,  struct actor, approves_followers, "manuallyApprovesFollowers"),
	SHAPE(TEXT,  struct actor, public_key_pem, NULL),
	SHAPE(BYTES, struct actor, private_key, NULL),
	SHAPE(TIME,  struct actor, created_at, "createdAt"),
	SHAPE(TIME,  struct actor, key_made_at, "keyMadeAt"),
	SHAPE(TIME,  struct actor, deleted_at, "deletedAt"),
	SHAPE_END(struct actor),
};
/* clang-format on */

static const char *const kinds[] = { "Person", "Service", "Application",
	"Group" };

struct is_on {
	bool fediverse;
};

static const struct shape is_on_shape[] = {
	SHAPE(BOOL, struct is_on, fediverse, NULL),
	SHAPE_END(struct is_on),
};

bool fediverse_check(struct tx *tx, struct err *err)
{
	struct is_on is;

	if (!sql_one(tx, &SQL_fediverse_on, is_on_shape, &is, err))
		return false;
	return is.fediverse || err_set(err, ERR_ABSENT, "Not found");
}

/* ---- finding ---- */

bool actor_by_name(struct tx *tx, const char *username, struct actor *actor,
    bool *found, struct err *err)
{
	return sql_opt(tx, &SQL_actor_by_name, actor_shape, actor, found, err,
	    v_text(username));
}

bool actor_by_id(struct tx *tx, const char *id, struct actor *actor,
    bool *found, struct err *err)
{
	return sql_opt(
	    tx, &SQL_actor_by_id, actor_shape, actor, found, err, v_text(id));
}

bool actor_by_user(struct tx *tx, int64_t user, struct actor *actor,
    bool *found, struct err *err)
{
	return sql_opt(
	    tx, &SQL_actor_by_user, actor_shape, actor, found, err, v_id(user));
}

bool actor_instance(
    struct tx *tx, struct actor *actor, bool *found, struct err *err)
{
	return sql_opt(tx, &SQL_actor_instance, actor_shape, actor, found, err);
}

struct total {
	int64_t total;
};

static const struct shape total_shape[] = {
	SHAPE(INT, struct total, total, NULL),
	SHAPE_END(struct total),
};

bool actor_count(struct tx *tx, int64_t *total, struct err *err)
{
	struct total row;

	if (!sql_one(tx, &SQL_actor_count, total_shape, &row, err))
		return false;
	*total = row.total;
	return true;
}

bool actor_list(struct tx *tx, struct rows *actors, struct err *err)
{
	return sql_many(tx, &SQL_actor_list, actor_shape, actors, err);
}

/* ---- keys ---- */

static const char *context_of(struct arena *arena, const char *id)
{
	return arena_printf(arena, "actor:%s", id);
}

/* A fresh pair: the public half and the sealed private one. */
static struct bytes key_fresh(struct arena *arena, const struct node_key *key,
    const char *id, const char **public_pem)
{
	const char *private_pem;

	pkey_fresh(arena, &private_pem, public_pem);
	return secret_seal(arena, key, context_of(arena, id), private_pem);
}

bool actor_key(struct arena *arena, const struct node_key *key,
    const struct actor *actor, struct pkey **pkey, struct err *err)
{
	const char *pem = secret_open(
	    arena, key, context_of(arena, actor->id), actor->private_key);

	if (!pem)
		return err_set(err, ERR_BUG,
		    "the key of actor %s does not open", actor->username);
	return pkey_private(pem, pkey, err);
}

/* ---- making ---- */

static bool insert(struct tx *tx, const struct node_key *key,
    const struct actor_draft *draft, bool is_instance, struct actor *actor,
    bool *made, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct actor fresh;
	const char *public_pem;
	struct bytes box;

	static const struct shape id_shape[] = {
		SHAPE(TEXT, struct actor, id, NULL),
		SHAPE_END(struct actor),
	};

	if (!sql_one(tx, &SQL_actor_fresh_id, id_shape, &fresh, err))
		return false;
	box = key_fresh(arena, key, fresh.id, &public_pem);
	return sql_opt(tx, &SQL_actor_make, actor_shape, actor, made, err,
	    v_text(fresh.id), v_id(draft->user_id), v_text(draft->username),
	    v_text(draft->kind), v_text(draft->display_name),
	    v_bool(is_instance), v_bool(draft->approves_followers),
	    v_text(public_pem), v_bytes(box));
}

/* Letters, digits and "_", inside also "." and "-". */
static bool is_name(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (!strchr(plain, text[i]) &&
		    (i == 0 || i + 1 == len || !strchr(".-", text[i])))
			return false;
	return len > 0 && len <= ACTOR_NAME_MAX;
}

static bool is_kind(const char *text)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (strcmp(kinds[i], text) == 0)
			return true;
	return false;
}

bool actor_make(struct tx *tx, const struct node_key *key,
    const struct actor_draft *draft, struct actor *actor, struct err *err)
{
	struct actor made;
	bool found;

	if (!is_name(draft->username))
		return err_set(err, ERR_INVALID,
		    "username must be letters, digits and _, "
		    "inside also . and -");
	if (!is_kind(draft->kind))
		return err_set(err, ERR_INVALID,
		    "type must be Person, Service, Application or Group");
	if (!insert(tx, key, draft, false, &made, &found, err))
		return false;
	if (!found)
		return err_set(err, ERR_CONFLICT,
		    "There is an actor of this name or person already");
	*actor = made;
	return true;
}

/* Two may make it at once: the second insert waits and makes nothing. */
bool actor_instance_make(struct tx *tx, const struct node_key *key,
    const struct origin *origin, struct actor *actor, struct err *err)
{
	const struct actor_draft draft = { .username = origin->host,
		.kind = "Application",
		.approves_followers = true };
	bool found;

	if (!actor_instance(tx, actor, &found, err))
		return false;
	if (found)
		return true;
	if (!insert(tx, key, &draft, true, actor, &found, err))
		return false;
	if (found)
		return true;
	return actor_instance(tx, actor, &found, err) &&
	    (found || err_set(err, ERR_BUG, "no actor for the instance"));
}

bool actor_rotate(struct tx *tx, const struct node_key *key,
    struct actor *actor, struct err *err)
{
	const char *public_pem;
	struct bytes box = key_fresh(tx_arena(tx), key, actor->id, &public_pem);
	struct actor rotated;
	bool found;

	if (!sql_opt(tx, &SQL_actor_rotate, actor_shape, &rotated, &found, err,
		v_text(actor->id), v_text(public_pem), v_bytes(box)))
		return false;
	if (!found)
		return err_set(err, ERR_CONFLICT, "The actor is deleted");
	*actor = rotated;
	return true;
}

bool actor_delete(struct tx *tx, struct actor *actor, struct err *err)
{
	return sql_one(
	    tx, &SQL_actor_delete, actor_shape, actor, err, v_text(actor->id));
}

/* ---- names ---- */

const char *actor_url(
    struct arena *arena, const struct origin *origin, const struct actor *actor)
{
	if (actor->is_instance)
		return arena_printf(arena, "%s/actor", origin->text);
	return arena_printf(
	    arena, "%s/users/%s", origin->text, actor->username);
}

const char *actor_key_id(
    struct arena *arena, const struct origin *origin, const struct actor *actor)
{
	return arena_printf(
	    arena, "%s#main-key", actor_url(arena, origin, actor));
}

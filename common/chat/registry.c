#include "common/chat/registry.h"

#include "common/chat/registry.sql.h"

/* clang-format off */
static const struct shape entry_shape[] = {
	SHAPE(TEXT, struct registry_entry, origin, "origin"),
	SHAPE(TEXT, struct registry_entry, label, "label"),
	SHAPE(TEXT, struct registry_entry, username, "username"),
	SHAPE(TEXT, struct registry_entry, remote_user_id, "remoteUserId"),
	SHAPE(TEXT, struct registry_entry, status, "status"),
	SHAPE(TIME, struct registry_entry, added_at, "addedAt"),
	SHAPE(TIME, struct registry_entry, last_connected_at, "lastConnectedAt"),
	SHAPE(TIME, struct registry_entry, disconnected_at, "disconnectedAt"),
	SHAPE(TEXT, struct registry_entry, error_message, "errorMessage"),
	SHAPE_END(struct registry_entry),
};

static const struct shape version_shape[] = {
	SHAPE(TIME, struct registry, updated_at, NULL),
	SHAPE_END(struct registry),
};
/* clang-format on */

bool registry_status_is_known(const char *status)
{
	static const char *const known[] = { "connected", "disconnected",
		"unreachable", "auth_expired" };

	for (size_t i = 0; i < COUNT(known); i++)
		if (strcmp(known[i], status) == 0)
			return true;
	return false;
}

bool registry_read(
    struct tx *tx, int64_t person, struct registry *registry, struct err *err)
{
	struct registry read = { .updated_at = 0 };
	struct rows entries;

	if (!sql_one(tx, &SQL_registry_version, version_shape, &read, err,
		v_id(person)) ||
	    !sql_many(tx, &SQL_registry_read, entry_shape, &entries, err,
		v_id(person)))
		return false;
	registry->updated_at = read.updated_at;
	registry->entries = entries;
	return true;
}

struct columns {
	const char **texts[6];
	int64_t *times[3];
};

static struct columns columns_of(
    struct arena *arena, const struct registry_entry *all, size_t count)
{
	struct columns c;

	for (size_t i = 0; i < COUNT(c.texts); i++)
		c.texts[i] = arena_array(arena, count, sizeof(char *));
	for (size_t i = 0; i < COUNT(c.times); i++)
		c.times[i] = arena_array(arena, count, sizeof(int64_t));
	for (size_t i = 0; i < count; i++) {
		c.texts[0][i] = all[i].origin;
		c.texts[1][i] = all[i].label;
		c.texts[2][i] = all[i].username;
		c.texts[3][i] = all[i].remote_user_id;
		c.texts[4][i] = all[i].status;
		c.texts[5][i] = all[i].error_message;
		c.times[0][i] = all[i].added_at;
		c.times[1][i] = all[i].last_connected_at;
		c.times[2][i] = all[i].disconnected_at;
	}
	return c;
}

bool registry_replace(struct tx *tx, int64_t person,
    const struct registry *registry, struct err *err)
{
	size_t n = registry->entries.count;
	struct columns c = columns_of(tx_arena(tx), registry->entries.items, n);
	int64_t advanced;

	if (!sql_count(tx, &SQL_registry_advance, &advanced, err, v_id(person),
		v_time(registry->updated_at)))
		return false;
	if (advanced == 0)
		return err_set(
		    err, ERR_CONFLICT, "A newer registry is already stored");
	return sql_none(tx, &SQL_registry_clear, err, v_id(person)) &&
	    (n == 0 ||
		sql_none(tx, &SQL_registry_fill, err, v_id(person),
		    v_texts(c.texts[0], n), v_texts(c.texts[1], n),
		    v_texts(c.texts[2], n), v_texts(c.texts[3], n),
		    v_texts(c.texts[4], n), v_times(c.times[0], n),
		    v_times(c.times[1], n), v_times(c.times[2], n),
		    v_texts(c.texts[5], n)));
}

bool registry_leave(struct tx *tx, int64_t person, const char *const *origins,
    size_t count, struct err *err)
{
	return count == 0 ||
	    sql_none(tx, &SQL_registry_leave, err, v_id(person),
		v_texts(origins, count));
}

void registry_write(struct buf *out, const struct registry *registry)
{
	struct json_out json = { .buf = out };
	const struct registry_entry *all = registry->entries.items;

	json_open(&json, NULL);
	json_open_list(&json, "registry");
	for (size_t i = 0; i < registry->entries.count; i++)
		json_put_shape(&json, NULL, entry_shape, &all[i]);
	json_close_list(&json);
	json_put_int(&json, "updatedAt", registry->updated_at);
	json_close(&json);
}

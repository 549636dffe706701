#include "common/federation/ask.h"

#include "common/federation/ask.sql.h"
#include "common/pg/notify.h"

const struct shape ask_shape[] = {
	SHAPE(ID, struct ask, id, NULL),
	SHAPE(TEXT, struct ask, kind, NULL),
	SHAPE(ID, struct ask, peer_id, NULL),
	SHAPE(TEXT, struct ask, origin, NULL),
	SHAPE(BYTES, struct ask, body, NULL),
	SHAPE(BOOL, struct ask, ephemeral, NULL),
	SHAPE(TIME, struct ask, deadline, NULL),
	SHAPE(TIME, struct ask, answered_at, NULL),
	SHAPE(TEXT, struct ask, outcome, NULL),
	SHAPE(INT, struct ask, status, NULL),
	SHAPE(TEXT, struct ask, answer, NULL),
	SHAPE(TEXT, struct ask, error, NULL),
	SHAPE_END(struct ask),
};

struct added {
	int64_t id;
};

static const struct shape added_shape[] = {
	SHAPE(ID, struct added, id, NULL),
	SHAPE_END(struct added),
};

bool ask_answered(const struct ask *ask, int64_t status)
{
	return ask->outcome && strcmp(ask->outcome, "answered") == 0 &&
	    ask->status == status;
}

const struct json *ask_answer(struct arena *arena, const char *answer)
{
	const struct json *value;
	struct err err;

	if (!answer ||
	    !json_parse(
		arena, (struct bytes){ answer, strlen(answer) }, &value, &err))
		return NULL;
	return value;
}

const char *ask_answer_text(
    struct arena *arena, const struct ask *ask, const char *member)
{
	const struct json *value = ask_answer(arena, ask->answer);

	return value ? json_string(json_member(value, member)) : NULL;
}

bool ask_add(struct tx *tx, struct ask *ask, struct err *err)
{
	struct added added;

	if (!sql_one(tx, &SQL_ask_add, added_shape, &added, err,
		v_text(ask->kind), v_id(ask->peer_id), v_text(ask->origin),
		v_bytes(ask->body), v_bool(ask->ephemeral),
		v_time(ask->deadline)))
		return false;
	ask->id = added.id;
	signal_request(tx, ask->id);
	return true;
}

/* The table does not outlive a crash of the database: nobody knows then. */
static bool lost(int64_t id, struct ask *ask)
{
	*ask = (struct ask){ .id = id, .answered_at = 1, .outcome = "unknown" };
	return true;
}

bool ask_read(struct tx *tx, int64_t id, struct ask *ask, struct err *err)
{
	bool found;

	if (!sql_opt(tx, &SQL_ask_read, ask_shape, ask, &found, err, v_id(id)))
		return false;
	return found || lost(id, ask);
}

bool ask_close(struct tx *tx, int64_t id, struct ask *ask, struct err *err)
{
	bool found;

	if (!sql_opt(tx, &SQL_ask_close, ask_shape, ask, &found, err, v_id(id)))
		return false;
	return found || lost(id, ask);
}

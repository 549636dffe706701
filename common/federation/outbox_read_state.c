#include "common/federation/outbox_read_state.h"

#include "common/base/id.h"
#include "common/federation/outbox_names.h"
#include "common/federation/outbox_people.h"

#include "common/federation/outbox_read_state.sql.h"

struct place {
	const char *federated_id;
	int64_t message;
};

static const struct shape place_shape[] = {
	SHAPE(TEXT, struct place, federated_id, NULL),
	SHAPE(ID, struct place, message, NULL),
	SHAPE_END(struct place),
};

struct telling {
	struct tx *tx;
	const struct node *node;
	const struct read_mark *mark;
	const struct outbox_person *person;
	struct place place;
};

/* In the recorded order. */
static const char *payload(
    const struct telling *telling, const struct message_name *name)
{
	struct arena *arena = tx_arena(telling->tx);
	struct json_out out;
	struct buf text;

	payload_open(&out, &text, arena);
	json_put_id(&out, "dmChannelId", telling->mark->channel);
	json_put_text(&out, "federatedId", telling->place.federated_id);
	json_open(&out, "readState");
	put_identity(&out, "user", arena, telling->node, telling->person);
	json_open(&out, "messageRef");
	json_put_text(&out, "sourceInstance", name->origin);
	json_put_text(&out, "sourceMessageId", name->id);
	json_close(&out);
	json_close(&out);
	return payload_close(&out);
}

/*
 * A context of its own: a node that does not have the conversation refuses
 * this, and no message may wait behind that.
 */
static bool tell(const struct telling *telling, const struct message_name *name,
    const struct targets *targets, struct err *err)
{
	struct arena *arena = tx_arena(telling->tx);
	const struct read_mark *mark = telling->mark;
	struct outbox_event event = {
		.event_type = "read_state_update",
		.context_type = "dm",
		.context_id =
		    arena_printf(arena, "read:%" PRId64, mark->channel),
		.entity_id = arena_printf(arena, "read_state:%s:%" PRId64,
		    telling->place.federated_id, mark->user),
		.payload = payload(telling, name),
		.sync_context_id = id_text(arena, mark->channel),
		.homeward = true, /* nobody else's business, also later */
	};

	return outbox_add(telling->tx, &event, targets, err);
}

static bool place_name(struct telling *telling, struct err *err)
{
	struct rows people;

	return telling->place.federated_id ||
	    (outbox_members(
		 telling->tx, telling->mark->channel, &people, err) &&
		outbox_name_pair(telling->tx, telling->mark->channel, &people,
		    &telling->place.federated_id, err));
}

static bool tell_all(
    const struct telling *telling, const struct targets *all, struct err *err)
{
	struct message_names names;
	struct targets usual;
	struct targets other;
	bool found;

	if (!outbox_names(telling->tx, telling->node, telling->place.message,
		&names, &found, err))
		return false;
	if (!found)
		return true;
	names_part(&names, telling->node, all, &usual, &other);
	return (usual.count == 0 || tell(telling, &names.usual, &usual, err)) &&
	    (other.count == 0 || tell(telling, &names.other, &other, err));
}

bool outbox_add_read_state(struct tx *tx, const struct node *node,
    const struct read_mark *mark, const char *except_host, struct err *err)
{
	struct telling telling = { .tx = tx, .node = node, .mark = mark };
	struct targets all;
	struct rows people;
	bool found;

	if (!mark->moved)
		return true;
	if (!outbox_people(tx, &mark->user, 1, &people, err))
		return false;
	telling.person = outbox_person_find(&people, mark->user);
	if (!telling.person)
		return true;
	targets_init(&all, tx_arena(tx), node, except_host);
	if (telling.person->home_instance)
		targets_add(&all, telling.person->home_instance);
	else
		targets_add_declared(
		    &all, telling.person->replicated_instances);
	if (all.count == 0)
		return true;
	return sql_opt(tx, &SQL_outbox_read_place, place_shape, &telling.place,
		   &found, err, v_id(mark->channel), v_id(mark->message)) &&
	    (!found ||
		(place_name(&telling, err) && tell_all(&telling, &all, err)));
}

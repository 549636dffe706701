#include "common/federation/outbox_reaction.h"

#include "common/base/id.h"
#include "common/federation/outbox_people.h"

#include "common/federation/outbox_reaction.sql.h"

struct names {
	const char *origin;
	const char *birth_id;
	const char *other_host; /* NULL: everybody knows it by one name */
	const char *other_origin;
	const char *other_id;
	bool to_all;
};

/* clang-format off */
static const struct shape names_shape[] = {
	SHAPE(TEXT, struct names, origin, NULL),
	SHAPE(TEXT, struct names, birth_id, NULL),
	SHAPE(TEXT, struct names, other_host, NULL),
	SHAPE(TEXT, struct names, other_origin, NULL),
	SHAPE(TEXT, struct names, other_id, NULL),
	SHAPE(BOOL, struct names, to_all, NULL),
	SHAPE_END(struct names),
};
/* clang-format on */

struct telling {
	struct tx *tx;
	const struct node *node;
	const struct reaction_word *word;
	const struct outbox_person *person;
	bool is_add;
};

/* ---- what it says, in the recorded order ---- */

static const char *payload(
    const struct telling *telling, const char *origin, const char *message_id)
{
	struct arena *arena = tx_arena(telling->tx);
	const struct reaction_word *word = telling->word;
	struct json_out out;
	struct buf text;

	payload_open(&out, &text, arena);
	json_put_id(&out, "dmChannelId", word->conversation);
	json_open(&out, "reaction");
	json_put_text(&out, "messageId", message_id);
	json_put_text(&out, "messageHomeInstance", origin);
	json_put_id(&out, "userId", word->person);
	json_put_text(
	    &out, "homeUserId", person_home_id(arena, telling->person));
	json_put_text(&out, "homeInstance",
	    person_instance(telling->node, telling->person));
	json_put_text(&out, "emoji", word->emoji);
	if (telling->is_add)
		json_put_int(&out, "createdAt", word->at);
	json_close(&out);
	return payload_close(&out);
}

static const char *entity_id(const struct telling *telling)
{
	const struct reaction_word *word = telling->word;

	if (telling->is_add)
		return id_text(tx_arena(telling->tx), word->id);
	return arena_printf(tx_arena(telling->tx), "%" PRId64 ":%" PRId64 ":%s",
	    word->message, word->person, word->emoji);
}

static bool tell(const struct telling *telling, const char *origin,
    const char *message_id, const struct targets *targets, bool to_all,
    struct err *err)
{
	struct outbox_event event = {
		.event_type =
		    telling->is_add ? "reaction_add" : "reaction_remove",
		.context_type = "dm",
		.context_id =
		    id_text(tx_arena(telling->tx), telling->word->conversation),
		.entity_id = entity_id(telling),
		.payload = payload(telling, origin, message_id),
		.at = telling->is_add ? 0 : telling->word->at,
		.to_all = to_all,
		.homeward = telling->person->home_instance != NULL,
	};

	return outbox_add(telling->tx, &event, targets, err);
}

/* ---- to whom ---- */

static bool tell_all(const struct telling *telling, const struct targets *all,
    const struct names *names, struct err *err)
{
	struct arena *arena = tx_arena(telling->tx);
	bool to_all = names->to_all && !telling->person->home_instance;
	struct targets usual;
	struct targets other;

	targets_init(&usual, arena, telling->node,
	    all->except ? all->except : names->other_host);
	targets_init(&other, arena, telling->node, all->except);
	for (size_t i = 0; i < all->count; i++)
		targets_add(names->other_host &&
			    !strcmp(all->hosts[i], names->other_host)
			? &other
			: &usual,
		    all->hosts[i]);
	return tell(telling, names->origin, names->birth_id, &usual, to_all,
		   err) &&
	    (other.count == 0 ||
		tell(telling, names->other_origin, names->other_id, &other,
		    false, err));
}

bool outbox_add_reaction(struct tx *tx, const struct node *node,
    const char *event_type, const struct reaction_word *word,
    const char *except_host, struct err *err)
{
	struct telling telling = {
		.tx = tx,
		.node = node,
		.word = word,
		.is_add = strcmp(event_type, "reaction_add") == 0,
	};
	struct rows people;
	struct targets all;
	struct names names;
	bool found;

	if (word->outcome != REACTION_CHANGED)
		return true;
	if (!outbox_members(tx, word->conversation, &people, err))
		return false;
	telling.person = outbox_person_find(&people, word->person);
	if (!telling.person)
		return true;
	targets_init(&all, tx_arena(tx), node, except_host);
	targets_add_for(&all, telling.person, &people);
	return sql_opt(tx, &SQL_outbox_message_names, names_shape, &names,
		   &found, err, v_id(word->message),
		   v_text(node->origin.text)) &&
	    (!found || tell_all(&telling, &all, &names, err));
}

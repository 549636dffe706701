#include "common/federation/outbox_reaction.h"

#include "common/base/id.h"
#include "common/federation/outbox_names.h"
#include "common/federation/outbox_people.h"

struct telling {
	struct tx *tx;
	const struct node *node;
	const struct reaction_word *word;
	const struct outbox_person *person;
	bool is_add;
	bool by_other_name; /* which only these targets know */
};

/* ---- what it says, in the recorded order ---- */

static const char *payload(
    const struct telling *telling, const struct message_name *name)
{
	struct arena *arena = tx_arena(telling->tx);
	const struct reaction_word *word = telling->word;
	struct json_out out;
	struct buf text;

	payload_open(&out, &text, arena);
	json_put_id(&out, "dmChannelId", word->conversation);
	json_open(&out, "reaction");
	json_put_text(&out, "messageId", name->id);
	json_put_text(&out, "messageHomeInstance", name->origin);
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

static bool tell(const struct telling *telling, const struct message_name *name,
    const struct targets *targets, bool to_all, struct err *err)
{
	struct outbox_event event = {
		.event_type =
		    telling->is_add ? "reaction_add" : "reaction_remove",
		.context_type = "dm",
		.context_id =
		    id_text(tx_arena(telling->tx), telling->word->conversation),
		.entity_id = entity_id(telling),
		.payload = payload(telling, name),
		.at = telling->is_add ? 0 : telling->word->at,
		.to_all = to_all,
		.homeward = telling->by_other_name ||
		    telling->person->home_instance != NULL,
	};

	return outbox_add(telling->tx, &event, targets, err);
}

static bool tell_all(const struct telling *telling, const struct targets *all,
    const struct message_names *names, struct err *err)
{
	bool to_all = names->to_all && !telling->person->home_instance;
	struct telling again = *telling;
	struct targets usual;
	struct targets other;

	again.by_other_name = true;
	names_part(names, telling->node, all, &usual, &other);
	return tell(telling, &names->usual, &usual, to_all, err) &&
	    (other.count == 0 ||
		tell(&again, &names->other, &other, false, err));
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
	struct message_names names;
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
	return outbox_names(tx, node, word->message, &names, &found, err) &&
	    (!found || tell_all(&telling, &all, &names, err));
}

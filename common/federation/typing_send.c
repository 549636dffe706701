#include "common/federation/typing_send.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/pg/notify.h"

#include "common/federation/typing_send.sql.h"

enum { BODY_MAX = 256 * 1024 };

struct place {
	const char *federated_id;
	bool is_group;
};

static const struct shape place_shape[] = {
	SHAPE(TEXT, struct place, federated_id, NULL),
	SHAPE(BOOL, struct place, is_group, NULL),
	SHAPE_END(struct place),
};

struct asked {
	int64_t id;
};

static const struct shape asked_shape[] = {
	SHAPE(ID, struct asked, id, NULL),
	SHAPE_END(struct asked),
};

/* ---- the request, in the recorded order ---- */

static void put_typing(
    struct json_out *out, struct arena *arena, const struct typing_news *news)
{
	const struct outbox_person *person = news->person;

	json_open(out, "typing");
	json_put_text(out, "homeUserId", person_home_id(arena, person));
	json_put_text(out, "homeInstance",
	    person->home_instance ? person->home_instance
				  : news->node->origin.host);
	json_put_text(out, "username", person->username);
	json_close(out);
}

static void put_event(
    struct json_out *out, struct arena *arena, const struct typing_news *news)
{
	int64_t now = clock_wall_ms();

	json_open(out, NULL);
	json_put_text(out, "eventType",
	    news->starts ? "dm_typing_start" : "dm_typing_stop");
	json_put_text(out, "contextType", "dm");
	json_put_text(out, "messageId",
	    arena_printf(
		arena, "typing:%" PRId64 ":%" PRId64, news->person->id, now));
	json_put_text(out, "federatedId", news->federated_id);
	put_participants(out, arena, news->node, news->people);
	json_put_int(out, "encryptionVersion", 0);
	json_put_int(out, "timestamp", now);
	put_typing(out, arena, news);
	json_close(out);
}

static struct bytes request(struct arena *arena, const struct typing_news *news)
{
	struct buf text;
	struct json_out out = { .buf = &text };

	buf_init(&text, arena, BODY_MAX);
	json_open(&out, NULL);
	json_put_int(&out, "version", 1);
	json_put_text(&out, "sourceInstance", news->node->origin.text);
	json_open_list(&out, "events");
	put_event(&out, arena, news);
	json_close_list(&out);
	json_close(&out);
	assert(buf_ok(&text));
	return buf_bytes(&text);
}

bool typing_tell(struct tx *tx, const struct typing_news *news, struct err *err)
{
	struct rows rows;
	const struct asked *asked;

	if (!sql_many(tx, &SQL_typing_ask, asked_shape, &rows, err,
		v_texts(news->targets->hosts, news->targets->count),
		v_bytes(request(tx_arena(tx), news))))
		return false;
	asked = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		signal_request(tx, asked[i].id);
	return true;
}

/* ---- whom, and whether at all ---- */

static bool place_find(struct tx *tx, int64_t conversation, int64_t person,
    const struct rows *people, bool starts, const char **federated_id,
    struct err *err)
{
	struct place place = { 0 };
	bool found;

	*federated_id = NULL;
	if (!sql_opt(tx, starts ? &SQL_typing_start : &SQL_typing_stop,
		place_shape, &place, &found, err, v_id(conversation),
		v_id(person)))
		return false;
	*federated_id = found ? place.federated_id : NULL;
	return !found || place.federated_id || place.is_group ||
	    outbox_name_pair(tx, conversation, people, federated_id, err);
}

bool typing_send(struct tx *tx, const struct node *node, int64_t conversation,
    int64_t person, bool starts, struct err *err)
{
	struct rows people;
	struct targets targets;
	struct typing_news news = {
		.node = node,
		.people = &people,
		.targets = &targets,
		.starts = starts,
	};

	if (!outbox_members(tx, conversation, &people, err))
		return false;
	news.person = outbox_person_find(&people, person);
	if (!news.person)
		return true;
	targets_init(&targets, tx_arena(tx), node, NULL);
	targets_add_for(&targets, news.person, &people);
	if (targets.count == 0)
		return true;
	return place_find(tx, conversation, person, &people, starts,
		   &news.federated_id, err) &&
	    (!news.federated_id || typing_tell(tx, &news, err));
}

#include "common/federation/outbox_friend.h"

#include "common/federation/outbox_people.h"
#include "common/federation/outbox_profile.h"

/* clang-format off */
static const struct news_type {
	const char *event_type;
	const char *id_prefix;
	bool profiles;
	const char *status; /* fixed */
} types[] = {
	[NEWS_REQUEST_CREATE] = { "friend_request_create", "friend_req", true,  "pending" },
	[NEWS_REQUEST_UPDATE] = { "friend_request_update", "friend_req", true,  NULL },
	[NEWS_REQUEST_CANCEL] = { "friend_request_cancel", "friend_req", false, NULL },
	[NEWS_FRIEND_ADD]     = { "friend_add",            "friend",     true,  NULL },
	[NEWS_FRIEND_REMOVE]  = { "friend_remove",         "friend",     false, NULL },
};
/* clang-format on */

struct entry {
	const struct node *node;
	const struct friend_news *news;
	const struct outbox_person *from, *to;
	bool homeward;
};

static const char *payload(struct arena *arena, const struct entry *entry)
{
	const struct news_type *type = &types[entry->news->type];
	const char *status = type->status ? type->status : entry->news->status;
	struct json_out out;
	struct buf text;

	payload_open(&out, &text, arena);
	json_open(&out, "friendship");
	put_identity(&out, "from", arena, entry->node, entry->from);
	put_identity(&out, "to", arena, entry->node, entry->to);
	if (type->profiles) {
		put_snapshot(&out, "fromProfile", entry->from);
		put_snapshot(&out, "toProfile", entry->to);
	}
	if (status)
		json_put_text(&out, "status", status);
	json_put_int(&out, "createdAt", entry->news->created_at);
	json_close(&out);
	return payload_close(&out);
}

static bool add(struct tx *tx, const struct entry *entry,
    const struct targets *targets, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const struct news_type *type = &types[entry->news->type];
	const char *a = person_home_id(arena, entry->from);
	const char *b = person_home_id(arena, entry->to);
	const char *low = strcmp(a, b) <= 0 ? a : b;
	const char *high = low == a ? b : a;
	struct outbox_event event = {
		.event_type = type->event_type,
		.context_type = "friend",
		.context_id = arena_printf(arena, "friend:%s:%s", low, high),
		.entity_id = arena_printf(arena, "%s:%s:%s:%" PRId64,
		    type->id_prefix, low, high, entry->news->at),
		.payload = payload(arena, entry),
		.homeward = entry->homeward,
	};

	return outbox_add(tx, &event, targets, err);
}

/* Whoever asks or accepts may be written to: where he has accounts, too. */
static bool tell_accounts(struct tx *tx, const struct entry *entry,
    const struct outbox_person *actor, const struct targets *targets,
    struct err *err)
{
	const struct friend_news *news = entry->news;

	if (actor->home_instance || !types[news->type].profiles ||
	    (news->status && strcmp(news->status, "declined") == 0) ||
	    strcmp(actor->replicated_instances, "[]") == 0)
		return true;
	return outbox_tell_accounts_of(
	    tx, entry->node, actor->id, targets, err);
}

bool outbox_add_friend(struct tx *tx, const struct node *node,
    const struct friend_news *news, const char *except_host, struct err *err)
{
	const int64_t ids[] = { news->from, news->to };
	struct entry entry = { .node = node, .news = news };
	const struct outbox_person *actor, *other;
	struct targets targets;
	struct rows people;

	if (!outbox_people(tx, ids, COUNT(ids), &people, err))
		return false;
	entry.from = outbox_person_find(&people, news->from);
	entry.to = outbox_person_find(&people, news->to);
	if (!entry.from || !entry.to)
		return true;
	actor = news->actor == news->from ? entry.from : entry.to;
	other = actor == entry.from ? entry.to : entry.from;
	entry.homeward = actor->home_instance != NULL;
	targets_init(&targets, tx_arena(tx), node, except_host);
	if (actor->home_instance)
		targets_add(&targets, actor->home_instance);
	else if (!other->is_deleted)
		targets_add(&targets, other->home_instance);
	return targets.count == 0 ||
	    (add(tx, &entry, &targets, err) &&
		tell_accounts(tx, &entry, actor, &targets, err));
}

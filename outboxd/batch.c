#include "outboxd/batch.h"

#include "outboxd/reason.h"

/* What two events about one thing become; result NULL: nothing. */
struct fold {
	const char *earlier;
	const char *later;
	const char *result;
};

/* clang-format off */
static const struct fold folds[] = {
	{ "create",            "update",            "create"            },
	{ "create",            "delete",            NULL                },
	{ "update",            "update",            "update"            },
	{ "update",            "delete",            "delete"            },
	{ "profile_update",    "profile_update",    "profile_update"    },
	{ "read_state_update", "read_state_update", "read_state_update" },
};
/* clang-format on */

struct chooser {
	struct batch *batch;
	struct blocks *blocks;
	const struct batch_limits *limits;
	struct names *closed; /* conversations that take nothing more */
	int64_t left_from;    /* first entry left for the next batch, or 0 */
};

static const struct fold *fold_find(const char *earlier, const char *later)
{
	for (size_t i = 0; i < COUNT(folds); i++)
		if (strcmp(folds[i].earlier, earlier) == 0 &&
		    strcmp(folds[i].later, later) == 0)
			return &folds[i];
	return NULL;
}

static void link_add(struct arena *arena, struct link **head,
    struct link **tail, const struct entry *entry)
{
	struct link *link = ARENA_NEW(arena, struct link);

	link->entry = entry;
	if (*tail)
		(*tail)->next = link;
	else
		*head = link;
	*tail = link;
}

static void drop(
    struct link **list, struct arena *arena, const struct entry *entry)
{
	struct link *link = ARENA_NEW(arena, struct link);

	*link = (struct link){ entry, *list };
	*list = link;
}

/* Asked for each entry several times: no formatting. */
static const char *conversation_of(
    struct arena *arena, const struct entry *entry)
{
	size_t type = strlen(entry->context_type);
	size_t id = strlen(entry->context_id);
	char *key = arena_alloc(arena, type + id + 2);

	memcpy(key, entry->context_type, type);
	key[type] = ' ';
	memcpy(key + type + 1, entry->context_id, id);
	return key;
}

static bool is_closed(const struct chooser *c, const struct entry *entry)
{
	return names_count(c->closed) > 0 &&
	    names_find(c->closed, conversation_of(c->batch->arena, entry));
}

/* entry is for a later batch, and so is what follows in its conversation. */
static void leave(struct chooser *c, const struct entry *entry)
{
	if (!c->left_from)
		c->left_from = entry->id;
	names_add(c->closed, conversation_of(c->batch->arena, entry), c);
}

static bool was_presented(const struct chooser *c, const struct entry *entry)
{
	return entry->id <= c->limits->presented_through;
}

static bool same_thing(const struct entry *a, const struct entry *b)
{
	return strcmp(a->context_type, b->context_type) == 0 &&
	    strcmp(a->context_id, b->context_id) == 0;
}

/* A create nobody has heard of and everything about it comes to nothing. */
static void cancel(struct chooser *c, struct item *item)
{
	struct batch *batch = c->batch;

	drop(&batch->cancelled, batch->arena, item->first);
	for (struct link *l = item->folded; l; l = l->next)
		drop(&batch->cancelled, batch->arena, l->entry);
	item->cancelled = true;
	batch->live--;
	batch->bytes -= strlen(item->payload);
}

static bool item_fold(
    struct chooser *c, struct item *item, const struct entry *entry)
{
	const struct fold *fold =
	    fold_find(item->event_type, entry->event_type);
	struct batch *batch = c->batch;

	if (item->closed || !fold || !same_thing(item->first, entry))
		return false;
	if (!fold->result && was_presented(c, item->first))
		return false;
	link_add(batch->arena, &item->folded, &item->folded_tail, entry);
	if (!fold->result) {
		cancel(c, item);
		return true;
	}
	batch->bytes += strlen(entry->payload);
	batch->bytes -= strlen(item->payload);
	item->event_type = fold->result;
	item->payload = entry->payload;
	return true;
}

/* A thing that has an item already: it joins, or waits for the next batch. */
static void item_meet(
    struct chooser *c, struct item *item, const struct entry *entry)
{
	if (item->cancelled) {
		drop(&c->batch->cancelled, c->batch->arena, entry);
		return;
	}
	if (item_fold(c, item, entry))
		return;
	item->closed = true;
	leave(c, entry);
}

static void item_add(struct chooser *c, const struct entry *entry)
{
	struct batch *batch = c->batch;
	struct item *item = &batch->items[batch->count++];

	item->first = entry;
	item->event_type = entry->event_type;
	item->payload = entry->payload;
	item->retry = entry->retry_at != 0;
	batch->live++;
	batch->retries += item->retry;
	batch->bytes += strlen(entry->payload);
	names_add(batch->by_entity, entry->entity_id, item);
}

/* Its time to live ran out; of a create nobody has heard of, so did that of
 * everything about it. */
static void expire(struct chooser *c, const struct entry *entry)
{
	struct batch *batch = c->batch;
	struct item *item;

	drop(&batch->expired, batch->arena, entry);
	if (strcmp(entry->event_type, "create") != 0 || was_presented(c, entry))
		return;
	item = &batch->items[batch->count++];
	item->first = entry;
	item->event_type = entry->event_type;
	item->payload = "";
	item->cancelled = true;
	names_add(batch->by_entity, entry->entity_id, item);
}

static bool has_room(const struct chooser *c, const struct entry *entry)
{
	const struct batch *batch = c->batch;

	if (batch->live == 0)
		return true;
	return batch->live < c->limits->events_max &&
	    batch->bytes + strlen(entry->payload) <= BATCH_BYTES_MAX;
}

/* Set aside: what is behind it waits, whether its own time has come or not. */
static void retry(struct chooser *c, const struct entry *entry)
{
	const char *word = entry->reason ? entry->reason : "";
	bool free = !blocks_hit(c->blocks, c->batch->arena, entry);

	blocks_add(c->blocks, entry, word);
	if (free && entry->retry_at <= c->limits->now &&
	    c->batch->retries < BATCH_RETRIES_MAX && has_room(c, entry))
		item_add(c, entry);
}

static void consider(struct chooser *c, const struct entry *entry)
{
	struct batch *batch = c->batch;
	struct item *item = names_find(batch->by_entity, entry->entity_id);

	if (item) {
		item_meet(c, item, entry);
		return;
	}
	if (is_closed(c, entry)) {
		leave(c, entry);
		return;
	}
	if (entry->expires_at <= c->limits->now) {
		expire(c, entry);
		return;
	}
	if (entry->retry_at) {
		retry(c, entry);
		return;
	}
	if (blocks_hit(c->blocks, batch->arena, entry))
		return;
	if (has_room(c, entry) && !blocks_full(c->blocks))
		item_add(c, entry);
	else
		leave(c, entry);
}

static int64_t last_id(const struct batch *batch)
{
	int64_t last = 0;

	for (size_t i = 0; i < batch->count; i++) {
		const struct item *item = &batch->items[i];
		const struct entry *end =
		    item->folded_tail ? item->folded_tail->entry : item->first;

		if (!item->cancelled && end->id > last)
			last = end->id;
	}
	return last;
}

void batch_choose(struct batch *batch, struct arena *arena,
    struct blocks *blocks, const struct rows *window,
    const struct batch_limits *limits)
{
	const struct entry *entries = window->items;
	struct chooser chooser = { batch, blocks, limits, NULL, 0 };
	size_t end = window->count;

	*batch = (struct batch){ .arena = arena };
	batch->items = arena_array(arena, window->count, sizeof(struct item));
	batch->by_entity = names_new(arena);
	chooser.closed = names_new(arena);
	for (size_t i = 0; i < end; i++) {
		consider(&chooser, &entries[i]);
		if (batch->live == limits->events_max && end == window->count &&
		    window->count - i > BATCH_LOOK_ON)
			end = i + BATCH_LOOK_ON;
	}
	batch->last_id = last_id(batch);
	if (chooser.left_from)
		batch->cursor = chooser.left_from - 1;
	else if (end > 0)
		batch->cursor = entries[end - 1].id;
}

struct item *batch_find(const struct batch *batch, const char *entity_id)
{
	struct item *item = names_find(batch->by_entity, entity_id);

	return item && !item->cancelled ? item : NULL;
}

static void item_write(const struct item *item, struct json_out *out)
{
	const struct entry *first = item->first;

	json_open(out, NULL);
	json_put_text(out, "eventType", item->event_type);
	json_put_text(out, "contextType", first->context_type);
	json_put_text(out, "messageId", first->entity_id);
	json_put_int(out, "encryptionVersion", first->encryption_version);
	json_put_time(out, "timestamp", first->created_at);
	if (item->payload[0]) {
		buf_char(out->buf, ',');
		buf_text(out->buf, item->payload);
	}
	json_close(out);
}

void batch_write(const struct batch *batch, const char *origin, struct buf *buf)
{
	struct json_out out = { .buf = buf };

	json_open(&out, NULL);
	json_put_int(&out, "version", 1);
	json_put_text(&out, "sourceInstance", origin);
	json_open_list(&out, "events");
	for (size_t i = 0; i < batch->count; i++)
		if (!batch->items[i].cancelled)
			item_write(&batch->items[i], &out);
	json_close_list(&out);
	json_close(&out);
}

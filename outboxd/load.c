#include "outboxd/load.h"

#include "common/base/clock.h"
#include "common/crypto/sign.h"

static void owe(struct owed *owed, const struct entry *entry)
{
	if (owed->count == owed->room) {
		owed->room = owed->room ? owed->room * 2 : BATCH_EVENTS_MAX * 2;
		owed->ids =
		    reallocarray(owed->ids, owed->room, sizeof(owed->ids[0]));
		if (!owed->ids)
			abort();
	}
	owed->ids[owed->count++] = entry->id;
}

void owed_add(struct owed *owed, const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct item *item = &batch->items[i];

		if (item->cancelled)
			continue;
		owe(owed, item->first);
		for (struct link *l = item->folded; l; l = l->next)
			owe(owed, l->entry);
	}
}

void owed_done(struct owed *owed)
{
	free(owed->ids);
	*owed = (struct owed){ 0 };
}

struct load *load_new(void)
{
	struct load *load = calloc(1, sizeof(*load));

	if (!load)
		abort();
	load->arena = arena_new();
	return load;
}

void load_free(struct load **load)
{
	if (!*load)
		return;
	arena_free(&(*load)->arena);
	free(*load);
	*load = NULL;
}

void load_reset(struct load *load)
{
	struct arena *arena = load->arena;

	arena_reset(arena);
	*load = (struct load){ .arena = arena };
}

/* Nothing was folded, dropped, brought back or left behind: what follows the
 * cursor is untouched. */
static bool is_plain(const struct batch *batch)
{
	if (batch->live != batch->count || batch->retries || batch->cancelled ||
	    batch->expired || batch->last_id > batch->cursor)
		return false;
	for (size_t i = 0; i < batch->count; i++)
		if (batch->items[i].folded)
			return false;
	return true;
}

/* Rows after the cursor, beginning at the place-th. */
static struct rows rows_after(
    const struct rows *window, size_t place, int64_t cursor)
{
	struct entry *entries = window->items;

	while (place < window->count && entries[place].id <= cursor)
		place++;
	return (struct rows){ place > 0 ? entries + place : entries,
		window->count - place };
}

void load_choose(struct load *load, struct blocks *blocks,
    const struct batch_limits *limits, size_t batches_max, int64_t *cursor)
{
	struct rows rest = load->window;

	load->parcels =
	    arena_array(load->arena, LOAD_BATCHES_MAX, sizeof(struct parcel));
	load->count = 0;
	do {
		struct batch *batch = &load->parcels[load->count].batch;

		batch_choose(batch, load->arena, blocks, &rest, limits);
		load->plain = is_plain(batch) && !blocks_any(blocks);
		if (rest.count > 0)
			*cursor = batch->cursor;
		if (batch->live == 0)
			return;
		load->count++;
		rest = rows_after(&rest, 0, *cursor);
	} while (load->plain && rest.count > 0 && load->count < batches_max);
}

const struct batch *load_last(const struct load *load)
{
	const struct parcel *end;

	if (!load->parcels)
		return NULL;
	end = &load->parcels[load->count];
	/* One that came to nothing ends the load, and is not counted. */
	if (load->count < LOAD_BATCHES_MAX && end->batch.arena)
		return &end->batch;
	return &end[-1].batch;
}

static void sign(struct load *load, struct parcel *parcel,
    const struct node *node, const char *secret)
{
	struct arena *arena = load->arena;
	const char *timestamp =
	    arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];

	sign_make(secret, timestamp, nonce, parcel->body, signature);
	parcel->headers[0] = (struct http_header){ "X-Federation-Signature",
		arena_text(arena, signature) };
	parcel->headers[1] =
	    (struct http_header){ "X-Federation-Origin", node->origin.text };
	parcel->headers[2] =
	    (struct http_header){ "X-Federation-Timestamp", timestamp };
	parcel->headers[3] =
	    (struct http_header){ "X-Federation-Nonce", nonce };
	parcel->headers[4] =
	    (struct http_header){ "Content-Type", "application/json" };
}

void load_seal(struct load *load, const struct node *node, const char *secret)
{
	for (size_t i = 0; i < load->count; i++) {
		struct parcel *parcel = &load->parcels[i];
		struct buf buf;

		buf_init(&buf, load->arena, BATCH_BODY_MAX);
		batch_write(&parcel->batch, node->origin.text, &buf);
		parcel->body = buf_bytes(&buf);
		sign(load, parcel, node, secret);
	}
	load->sealed = true;
}

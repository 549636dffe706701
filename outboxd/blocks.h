/*
 * blocks -- what must wait behind an entry that was refused for now.
 *
 * The reason says what: the conversation, the message that the event is about,
 * or the thing itself (DESIGN 4, third invariant). What is about a thing that
 * waits, as a reaction is about its message, waits too. Known while a peer is
 * leased, forgotten when its entries are read from the start again: the entries
 * that are set aside say it anew.
 *
 * One thread at a time.
 */
#ifndef POSTRIDER_BLOCKS_H
#define POSTRIDER_BLOCKS_H

#include "common/base/arena.h"
#include "outboxd/entry.h"

/* Beyond so many only retries are sent: the peer refuses everything. */
enum { BLOCKS_MAX = 1000 };

struct blocks;

struct blocks *blocks_new(void);
void blocks_free(struct blocks **blocks);
void blocks_clear(struct blocks *blocks);

/* entry was refused with this word: what its class names waits behind it. */
void blocks_add(
    struct blocks *blocks, const struct entry *entry, const char *word);
/* arena: for the keys it compares. */
bool blocks_hit(const struct blocks *blocks, struct arena *arena,
    const struct entry *entry);
bool blocks_full(const struct blocks *blocks);
bool blocks_any(const struct blocks *blocks);

#endif

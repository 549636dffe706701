/*
 * arena -- memory with the life of one unit of work.
 *
 * A request, a batch, a delivery or a sweep has one arena; everything made for
 * it lives there and ends with arena_reset. Memory comes zeroed and cannot
 * fail: out of memory ends the process (the queue is in PostgreSQL).
 *
 * Any thread, but one at a time.
 */
#ifndef POSTRIDER_ARENA_H
#define POSTRIDER_ARENA_H

#include "common/base/base.h"

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena **arena);

/* Gives up everything that was handed out, keeps one block for reuse. */
void arena_reset(struct arena *arena);

/* Zeroed, aligned for any type. arena_array refuses to overflow. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_array(struct arena *arena, size_t count, size_t size);

/* Runs call(arg) when the arena is reset or freed, the latest first. */
void arena_at_end(struct arena *arena, void (*call)(void *arg), void *arg);

char *arena_text(struct arena *arena, const char *text);
char *arena_textn(struct arena *arena, const void *text, size_t len);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF(2, 3);

/* Bytes in blocks, for metrics and tests. */
size_t arena_held_bytes(const struct arena *arena);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))

#endif

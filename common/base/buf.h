/*
 * buf -- text and bytes that grow up to a limit.
 *
 * The limit is named when the buffer is made. What would pass it is dropped
 * and marks the buffer; buf_ok asks once at the end. The content is always
 * NUL-ended beyond its length. With an arena the memory is the arena's and
 * buf_done is a no-op; without, buf_done frees it.
 */
#ifndef POSTRIDER_BUF_H
#define POSTRIDER_BUF_H

#include "common/base/arena.h"

struct buf {
	char *data;
	size_t len;
	size_t room;
	size_t max;
	struct arena *arena;
	bool overflow;
};

void buf_init(struct buf *buf, struct arena *arena, size_t max);
void buf_done(struct buf *buf);
void buf_clear(struct buf *buf);

void buf_add(struct buf *buf, const void *data, size_t len);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char c);
void buf_int(struct buf *buf, int64_t number);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF(2, 3);

/* Forget the first len bytes. */
void buf_drop(struct buf *buf, size_t len);

static inline bool buf_ok(const struct buf *buf)
{
	return !buf->overflow;
}

static inline struct bytes buf_bytes(const struct buf *buf)
{
	return (struct bytes){ buf->data, buf->len };
}

#endif

#include <stdarg.h>

#include "common/base/buf.h"

enum { ROOM_MIN = 128 };

void buf_init(struct buf *buf, struct arena *arena, size_t max)
{
	static char empty[1];

	*buf = (struct buf){ .data = empty, .arena = arena, .max = max };
}

void buf_done(struct buf *buf)
{
	if (!buf->arena && buf->room)
		free(buf->data);
	buf_init(buf, buf->arena, buf->max);
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->overflow = false;
	if (buf->room)
		buf->data[0] = '\0';
}

/* Room for more bytes and the NUL, or the mark of the overflow. */
static bool grow(struct buf *buf, size_t more)
{
	size_t need;
	size_t room;
	char *data;

	if (buf->overflow || more > buf->max - buf->len) {
		buf->overflow = true;
		return false;
	}
	need = buf->len + more + 1;
	if (need <= buf->room)
		return true;
	room = buf->room < ROOM_MIN ? ROOM_MIN : buf->room * 2;
	if (room < need)
		room = need;
	if (buf->arena)
		data =
		    memcpy(arena_alloc(buf->arena, room), buf->data, buf->len);
	else
		data = realloc(buf->room ? buf->data : NULL, room);
	if (!data)
		abort();
	buf->data = data;
	buf->room = room;
	return true;
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
	if (!grow(buf, len))
		return;
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void buf_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

void buf_int(struct buf *buf, int64_t number)
{
	char digits[24];
	char *p = digits + sizeof(digits);
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

	do
		*--p = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--p = '-';
	buf_add(buf, p, (size_t)(digits + sizeof(digits) - p));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	va_list again;
	int len;

	va_start(args, format);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		abort();
	if (grow(buf, (size_t)len)) {
		vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
		buf->len += (size_t)len;
	}
	va_end(again);
}

void buf_drop(struct buf *buf, size_t len)
{
	assert(len <= buf->len);
	if (!len)
		return;
	memmove(buf->data, buf->data + len, buf->len - len + 1);
	buf->len -= len;
}

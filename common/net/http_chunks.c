#include "common/net/http_parse.h"

#include "common/net/http_chars.h"

enum { CHUNK_DIGITS_MAX = 8, CHUNK_LINE_MAX = 256, TRAILERS_MAX = 8192 };

static const uint64_t CHUNK_MAX = UINT64_C(1) << 31;

enum chunk_state {
	CHUNK_SIZE,
	CHUNK_EXT_NAME,
	CHUNK_EXT_VALUE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER_NAME,
	CHUNK_TRAILER_VALUE,
	CHUNK_TRAILER_LF,
	CHUNK_END_LF,
	CHUNK_END
};

/* The state after this byte of the line "size;name=value", or -1. */
static int chunk_line(struct http_chunks *chunks, unsigned char c)
{
	bool some = chunks->line_len > 0;

	if (chunks->trailer_len++ > CHUNK_LINE_MAX)
		return -1;
	chunks->line_len++;
	if (some && c == '\r')
		return CHUNK_SIZE_LF;
	if (some && c == ';') {
		chunks->line_len = 0;
		return CHUNK_EXT_NAME;
	}
	if (chunks->state == CHUNK_SIZE) {
		int digit = http_hex(c);

		if (digit < 0 || chunks->line_len > CHUNK_DIGITS_MAX)
			return -1;
		chunks->left = chunks->left << 4 | (unsigned)digit;
		return chunks->left > CHUNK_MAX ? -1 : CHUNK_SIZE;
	}
	if (some && c == '=' && chunks->state == CHUNK_EXT_NAME) {
		chunks->line_len = 0;
		return CHUNK_EXT_VALUE;
	}
	return http_is_token(c) ? chunks->state : -1;
}

/* Fields that would frame or route must not come after the body. */
static const char *const trailer_refused[] = { "content-length",
	"transfer-encoding", "host", "connection", "expect", NULL };

/* Keeps in left, a bit a word, which of them the name may still become. */
static bool trailer_name_refused(struct http_chunks *chunks, char c)
{
	size_t at = chunks->line_len;
	bool whole = false;

	for (size_t i = 0; trailer_refused[i] != NULL; i++) {
		const char *word = trailer_refused[i];
		uint64_t bit = UINT64_C(1) << i;

		if (at == 0)
			chunks->left |= bit;
		if (!(chunks->left & bit))
			continue;
		if (c == ':')
			whole |= word[at] == '\0';
		else if (word[at] == '\0' || word[at] != http_lower(c))
			chunks->left &= ~bit;
	}
	return whole;
}

static int chunk_trailer(struct http_chunks *chunks, unsigned char c)
{
	if (chunks->trailer_len++ > TRAILERS_MAX)
		return -1;
	if (chunks->state == CHUNK_TRAILER_VALUE) {
		if (c == '\r')
			return CHUNK_TRAILER_LF;
		return http_is_value(c) ? CHUNK_TRAILER_VALUE : -1;
	}
	if (chunks->line_len == 0 && c == '\r')
		return CHUNK_END_LF;
	if (trailer_name_refused(chunks, (char)c))
		return -1;
	if (chunks->line_len > 0 && c == ':') {
		chunks->line_len = 0;
		return CHUNK_TRAILER_VALUE;
	}
	chunks->line_len++;
	return http_is_token(c) ? CHUNK_TRAILER_NAME : -1;
}

/* After the line's end: data, or after the last chunk the trailers. */
static int chunk_begin(struct http_chunks *chunks)
{
	chunks->line_len = 0;
	chunks->trailer_len = 0;
	return chunks->left > 0 ? CHUNK_DATA : CHUNK_TRAILER_NAME;
}

static int chunk_step(struct http_chunks *chunks, unsigned char c)
{
	switch (chunks->state) {
	case CHUNK_SIZE:
	case CHUNK_EXT_NAME:
	case CHUNK_EXT_VALUE:
		return chunk_line(chunks, c);
	case CHUNK_SIZE_LF:
		return c == '\n' ? chunk_begin(chunks) : -1;
	case CHUNK_DATA_CR:
		return c == '\r' ? CHUNK_DATA_LF : -1;
	case CHUNK_DATA_LF:
		return c == '\n' ? CHUNK_SIZE : -1;
	case CHUNK_TRAILER_LF:
		return c == '\n' ? CHUNK_TRAILER_NAME : -1;
	case CHUNK_END_LF:
		return c == '\n' ? CHUNK_END : -1;
	default:
		return chunk_trailer(chunks, c);
	}
}

enum http_parse http_parse_chunks(struct http_chunks *chunks, const char *data,
    size_t len, size_t *used, struct bytes *piece)
{
	*used = 0;
	*piece = (struct bytes){ data, 0 };
	while (*used < len && chunks->state != CHUNK_END) {
		int next;

		if (chunks->state == CHUNK_DATA) {
			size_t room = len - *used;

			piece->data = data + *used;
			piece->len =
			    chunks->left < room ? (size_t)chunks->left : room;
			*used += piece->len;
			chunks->left -= piece->len;
			if (chunks->left == 0)
				chunks->state = CHUNK_DATA_CR;
			return HTTP_MORE;
		}
		next = chunk_step(chunks, (unsigned char)data[*used]);
		if (next < 0)
			return HTTP_BAD;
		chunks->state = next;
		(*used)++;
	}
	return chunks->state == CHUNK_END ? HTTP_DONE : HTTP_MORE;
}

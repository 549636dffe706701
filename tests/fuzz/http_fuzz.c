/*
 * http_fuzz -- any bytes through the parser of heads and of chunks.
 *
 * What comes byte by byte must get the verdict, the length and the body of
 * what comes at once; nothing is used that was not given; texts that are
 * handed out keep the promises of http_parse.h.
 */
#include "common/net/http_parse.h"

enum { WHOLE_MAX = 20000, SMALL = 600, LARGE_STEP = 97 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct outcome {
	enum http_parse found;
	int status;
	size_t used;
	char *body;
	size_t body_len;
};

static void check_head(const struct http_head *head)
{
	assert(head->minor == 0 || head->minor == 1);
	assert(head->header_count <= HTTP_HEADERS_MAX);
	assert(head->content_length >= -1);
	assert(!head->chunked || (head->content_length == -1 && head->minor));
	assert(head->has_body == (head->chunked || head->content_length > 0));
	assert(*head->path != '\0' && strlen(head->path) <= HTTP_LINE_MAX);
	assert(head->minor == 0 || http_head_count(head, "host") == 1);
	assert(http_head_count(head, "host") <= 1);
	assert(http_head_count(head, "content-length") +
		http_head_count(head, "transfer-encoding") <=
	    1);
	for (size_t i = 0; i < head->header_count; i++)
		assert(strpbrk(head->headers[i].name, " \t:\r\n") == NULL &&
		    strpbrk(head->headers[i].value, "\r\n") == NULL);
}

static struct outcome chunks_run(const char *data, size_t len, size_t step)
{
	struct http_chunks chunks = { .state = 0 };
	struct outcome out = { .found = HTTP_MORE, .body = malloc(len + 1) };
	size_t end = 0;

	assert(out.body != NULL);
	while (out.found == HTTP_MORE && out.used < len) {
		struct bytes piece;
		size_t used;

		if (end <= out.used)
			end = len - out.used < step ? len : out.used + step;
		out.found = http_parse_chunks(
		    &chunks, data + out.used, end - out.used, &used, &piece);
		assert(used <= end - out.used);
		assert(used > 0 || out.found == HTTP_BAD);
		assert(piece.len <= used);
		memcpy(out.body + out.body_len, piece.data, piece.len);
		out.body_len += piece.len;
		out.used += used;
	}
	return out;
}

static void check_chunks(const char *data, size_t len)
{
	struct outcome whole = chunks_run(data, len, len);
	struct outcome parts = chunks_run(data, len, 1);

	assert(whole.found == parts.found && whole.used == parts.used);
	assert(whole.body_len == parts.body_len);
	assert(memcmp(whole.body, parts.body, whole.body_len) == 0);
	free(whole.body);
	free(parts.body);
}

static struct outcome head_run(
    struct arena *arena, struct http_head *head, struct bytes data, size_t step)
{
	struct outcome out = { .found = HTTP_MORE };
	size_t given = 0;

	while (out.found == HTTP_MORE && given < data.len) {
		given = data.len - given < step ? data.len : given + step;
		out.found = http_parse_head(
		    arena, data.data, given, head, &out.used, &out.status);
		assert(out.used <= given);
		assert((out.used > 0) == (out.found == HTTP_DONE));
	}
	return out;
}

static void check_request(struct arena *arena, const char *data, size_t len)
{
	struct http_head head = { .method = NULL };
	struct http_head again = { .method = NULL };
	struct bytes all = { data, len };
	struct outcome whole = head_run(arena, &head, all, len);
	struct outcome parts =
	    head_run(arena, &again, all, len <= SMALL ? 1 : LARGE_STEP);

	assert(whole.found == parts.found);
	assert(whole.found != HTTP_BAD || whole.status == parts.status);
	assert(whole.used == parts.used);
	if (whole.found == HTTP_BAD)
		assert(whole.status >= 400 && whole.status <= 505);
	if (whole.found != HTTP_DONE)
		return;
	check_head(&head);
	http_query_get(arena, head.query, "a");
	if (head.chunked)
		check_chunks(data + whole.used, len - whole.used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct arena *arena;

	if (len > WHOLE_MAX)
		return 0;
	arena = arena_new();
	check_request(arena, (const char *)data, len);
	check_chunks((const char *)data, len);
	arena_free(&arena);
	return 0;
}

/*
 * The grammar of requests; the rows are in http_rows.h.
 */
#include <criterion/criterion.h>

#include "common/net/http_parse.h"
#include "tests/unit/http_rows.h"

/* What a whole stream of one request comes to. */
struct verdict {
	enum http_parse found;
	int status;
	size_t used;
	size_t body_len;
	char body[64];
};

static enum http_parse chunks_read(
    struct verdict *verdict, const char *data, size_t len, size_t step)
{
	struct http_chunks chunks = { .state = 0 };
	enum http_parse found = HTTP_MORE;
	size_t at = 0, end = 0;

	while (found == HTTP_MORE && at < len) {
		struct bytes piece;
		size_t used;

		if (end <= at)
			end = at + step < len ? at + step : len;
		found = http_parse_chunks(
		    &chunks, data + at, end - at, &used, &piece);
		cr_assert(used <= end - at);
		if (found != HTTP_BAD)
			cr_assert(used > 0);
		cr_assert(
		    verdict->body_len + piece.len <= sizeof(verdict->body));
		memcpy(
		    verdict->body + verdict->body_len, piece.data, piece.len);
		verdict->body_len += piece.len;
		at += used;
	}
	verdict->used += at;
	verdict->status = 400;
	return found;
}

static struct verdict request_read(const char *data, size_t len, size_t step)
{
	struct verdict verdict = { .found = HTTP_MORE };
	struct arena *arena = arena_new();
	struct http_head head;

	for (size_t given = step; verdict.found == HTTP_MORE; given += step) {
		if (given > len)
			given = len;
		verdict.found = http_parse_head(
		    arena, data, given, &head, &verdict.used, &verdict.status);
		if (given == len)
			break;
	}
	if (verdict.found == HTTP_DONE && head.chunked)
		verdict.found = chunks_read(
		    &verdict, data + verdict.used, len - verdict.used, step);
	arena_free(&arena);
	return verdict;
}

/* In pieces of every small size the verdict is that of the whole. */
static void check_pieces(const char *name, const char *data, size_t len)
{
	struct verdict whole = request_read(data, len, len);

	for (size_t step = 1; step < 8 && step < len; step++) {
		struct verdict parts = request_read(data, len, step);

		cr_expect(
		    parts.found == whole.found && parts.status == whole.status,
		    "%s in pieces of %zu", name, step);
		if (whole.found != HTTP_DONE)
			continue;
		cr_expect(parts.used == whole.used &&
			parts.body_len == whole.body_len &&
			memcmp(parts.body, whole.body, whole.body_len) == 0,
		    "%s in pieces of %zu", name, step);
	}
}

static void check_refused(const struct http_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct verdict verdict =
		    request_read(rows[i].data, rows[i].len, rows[i].len);

		cr_expect_eq(verdict.found, HTTP_BAD, "%s", rows[i].name);
		cr_expect_eq(verdict.status, rows[i].status, "%s: %d",
		    rows[i].name, verdict.status);
		check_pieces(rows[i].name, rows[i].data, rows[i].len);
	}
}

Test(http_parse, heads_that_could_be_read_in_two_ways_are_refused)
{
	check_refused(http_heads_refused, COUNT(http_heads_refused));
}

Test(http_parse, bodies_that_could_be_read_in_two_ways_are_refused)
{
	check_refused(http_chunks_refused, COUNT(http_chunks_refused));
}

Test(http_parse, good_requests_are_taken_and_end_where_they_end)
{
	for (size_t i = 0; i < COUNT(http_taken); i++) {
		const struct http_taken *row = &http_taken[i];
		struct verdict verdict =
		    request_read(row->data, row->len, row->len);

		cr_expect_eq(verdict.found, HTTP_DONE, "%s", row->name);
		cr_expect_eq(
		    verdict.used, row->len - row->rest, "%s", row->name);
		cr_expect(verdict.body_len == strlen(row->body) &&
			memcmp(verdict.body, row->body, verdict.body_len) == 0,
		    "%s", row->name);
		check_pieces(row->name, row->data, row->len);
	}
}

Test(http_parse, every_beginning_of_a_good_request_waits_for_more)
{
	static const char text[] = POST "X-A: b\r\nContent-Length: 3\r\n\r\n";
	struct arena *arena = arena_new();
	struct http_head head;
	size_t used = 1;
	int status;

	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		cr_expect_eq(
		    http_parse_head(arena, text, len, &head, &used, &status),
		    HTTP_MORE);
		cr_expect_eq(used, 0);
	}
	arena_free(&arena);
}

/* ---- limits ---- */

/* before, then count times part, then after. */
static struct verdict repeated(
    const char *before, const char *part, size_t count, const char *after)
{
	size_t len = strlen(part);
	size_t total = strlen(before) + count * len + strlen(after);
	char *text = malloc(total + 1);
	char *at = stpcpy(text, before);
	struct verdict verdict;

	for (size_t i = 0; i < count; i++)
		at = stpcpy(at, part);
	stpcpy(at, after);
	verdict = request_read(text, total, total);
	free(text);
	return verdict;
}

Test(http_parse, limits_have_their_own_statuses)
{
	static const struct {
		const char *before, *part, *after;
		size_t fits;
		int status;
	} rows[] = {
		/* A line may have 8192 bytes with its CR. */
		{ "GET /", "a", " HTTP/1.1\r\n" HOST "\r\n", 8192 - 15, 414 },
		{ "GET / HTTP/1.1\r\n" HOST "X: ", "a", "\r\n\r\n", 8192 - 4,
		    431 },
		{ "GET / HTTP/1.1\r\n" HOST, "X: a\r\n", "\r\n", 99, 431 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct verdict good = repeated(
		    rows[i].before, rows[i].part, rows[i].fits, rows[i].after);
		struct verdict bad = repeated(rows[i].before, rows[i].part,
		    rows[i].fits + 1, rows[i].after);

		cr_expect_eq(good.found, HTTP_DONE, "row %zu", i);
		cr_expect_eq(bad.found, HTTP_BAD, "row %zu", i);
		cr_expect_eq(
		    bad.status, rows[i].status, "row %zu: %d", i, bad.status);
	}
}

Test(http_parse, a_head_beyond_its_limit_is_refused_before_its_end)
{
	char line[1024];
	struct verdict verdict;

	memset(line, 'a', sizeof(line));
	memcpy(line, "X: ", 3);
	memcpy(line + sizeof(line) - 3, "\r\n", 3);
	verdict = repeated("GET / HTTP/1.1\r\n" HOST, line, 17, "");
	cr_assert_eq(verdict.found, HTTP_BAD);
	cr_assert_eq(verdict.status, 431);
}

Test(http_parse, extensions_and_trailers_are_bounded)
{
	struct verdict verdict =
	    repeated(CHUNKED "1;", "a", 300, "\r\na\r\n0\r\n\r\n");

	cr_expect_eq(verdict.found, HTTP_BAD);
	verdict = repeated(CHUNKED "0\r\n", "X: a\r\n", 2000, "\r\n");
	cr_expect_eq(verdict.found, HTTP_BAD);
	verdict = repeated(CHUNKED "0\r\n", "X: a\r\n", 1000, "\r\n");
	cr_expect_eq(verdict.found, HTTP_DONE);
}

/* ---- what a head holds ---- */

static struct http_head head_of(struct arena *arena, const char *text)
{
	struct http_head head;
	size_t used;
	int status;

	cr_assert_eq(
	    http_parse_head(arena, text, strlen(text), &head, &used, &status),
	    HTTP_DONE);
	return head;
}

Test(http_parse, path_is_decoded_once_and_query_is_raw)
{
	static const struct {
		const char *target, *path, *query;
	} rows[] = {
		{ "/", "/", "" },
		{ "/a%20b/%C3%A9?q=%20+", "/a b/\xc3\xa9", "q=%20+" },
		{ "/%2541", "/%41", "" },
		{ "/a?b?c", "/a", "b?c" },
		{ "/a+b", "/a+b", "" },
		{ "http://chat.example", "/", "" },
		{ "http://chat.example?x=1", "/", "x=1" },
		{ "https://chat.example/a?x", "/a", "x" },
	};
	struct arena *arena = arena_new();

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct http_head head = head_of(arena,
		    arena_printf(arena, "GET %s HTTP/1.1\r\n" HOST "\r\n",
			rows[i].target));

		cr_expect_str_eq(head.target, rows[i].target);
		cr_expect_str_eq(head.path, rows[i].path);
		cr_expect_str_eq(head.query, rows[i].query);
	}
	arena_free(&arena);
}

Test(http_parse, connection_says_whether_to_keep_it)
{
	static const struct {
		const char *version, *headers;
		bool keep;
	} rows[] = {
		{ "HTTP/1.1", "", true },
		{ "HTTP/1.1", "Connection: close\r\n", false },
		{ "HTTP/1.1", "Connection: x, Close ,y\r\n", false },
		{ "HTTP/1.1", "Connection: x\r\nConnection: close\r\n", false },
		{ "HTTP/1.1", "Connection: closed\r\n", true },
		{ "HTTP/1.1", "Connection: upgrade\r\nUpgrade: x\r\n", false },
		{ "HTTP/1.0", "", false },
		{ "HTTP/1.0", "Connection: keep-alive\r\n", true },
		{ "HTTP/1.0", "Connection: keep-alive, close\r\n", false },
	};
	struct arena *arena = arena_new();

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct http_head head = head_of(arena,
		    arena_printf(arena, "GET / %s\r\n" HOST "%s\r\n",
			rows[i].version, rows[i].headers));

		cr_expect_eq(head.keep_alive, rows[i].keep, "row %zu", i);
	}
	arena_free(&arena);
}

Test(http_parse, headers_are_found_by_lower_case_name)
{
	struct arena *arena = arena_new();
	struct http_head head = head_of(arena,
	    POST "X-One:  a b  \r\nX-TWO: 1\r\nx-two: 2\r\n"
		 "Content-Length: 12\r\nExpect: 100-Continue\r\n\r\n");

	cr_expect_str_eq(head.method, "POST");
	cr_expect_eq(head.minor, 1);
	cr_expect_eq(head.header_count, 6);
	cr_expect_str_eq(http_head_get(&head, "x-one"), "a b");
	cr_expect_null(http_head_get(&head, "x-two"));
	cr_expect_null(http_head_get(&head, "x-three"));
	cr_expect_eq(http_head_count(&head, "x-two"), 2);
	cr_expect_eq(head.content_length, 12);
	cr_expect(head.has_body && head.expect_continue && !head.chunked);
	arena_free(&arena);
}

Test(http_parse, query_values_are_decoded)
{
	static const struct {
		const char *query, *value;
	} rows[] = {
		{ "a=1", "1" },
		{ "b=1&a=2", "2" },
		{ "a=1&a=2", "1" },
		{ "a=x+y%26z", "x y&z" },
		{ "%61=1", "1" },
		{ "a", "" },
		{ "a=", "" },
		{ "a=b=c", "b=c" },
		{ "&&a=1", "1" },
		{ "", NULL },
		{ "aa=1", NULL },
		{ "a=%4", NULL },
		{ "a=%00", NULL },
		{ "a=%ff", NULL },
	};
	struct arena *arena = arena_new();

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *value = http_query_get(arena, rows[i].query, "a");

		if (rows[i].value == NULL)
			cr_expect_null(value, "%s", rows[i].query);
		else
			cr_expect_str_eq(
			    value, rows[i].value, "%s", rows[i].query);
	}
	arena_free(&arena);
}

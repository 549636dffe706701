/*
 * The grammar of requests: one row a rule. A refused row is what some server
 * or proxy was seen to take, or what two could read differently.
 */
#include <criterion/criterion.h>

#include "common/net/http_parse.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define HOST "Host: chat.example\r\n"
#define POST "POST /a HTTP/1.1\r\n" HOST

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

struct row {
	const char *name;
	const char *data;
	size_t len;
	int status;
};

static const struct row refused[] = {
	/* clang-format off */
	{ "two different Content-Length", TEXT(POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n"), 400 },
	{ "two equal Content-Length", TEXT(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"), 400 },
	{ "a list of lengths", TEXT(POST "Content-Length: 3, 3\r\n\r\n"), 400 },
	{ "plus before a length", TEXT(POST "Content-Length: +3\r\n\r\n"), 400 },
	{ "minus before a length", TEXT(POST "Content-Length: -3\r\n\r\n"), 400 },
	{ "hexadecimal length", TEXT(POST "Content-Length: 0x3\r\n\r\n"), 400 },
	{ "space within a length", TEXT(POST "Content-Length: 3 3\r\n\r\n"), 400 },
	{ "empty length", TEXT(POST "Content-Length:\r\n\r\n"), 400 },
	{ "leading zero of a length", TEXT(POST "Content-Length: 03\r\n\r\n"), 400 },
	{ "length beyond 63 bits", TEXT(POST "Content-Length: 99999999999999999999\r\n\r\n"), 413 },
	{ "length and chunked", TEXT(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400 },
	{ "chunked and length", TEXT(POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"), 400 },
	{ "xchunked", TEXT(POST "Transfer-Encoding: xchunked\r\n\r\n"), 501 },
	{ "gzip, chunked", TEXT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501 },
	{ "gzip, chunked and a length", TEXT(POST "Transfer-Encoding: gzip, chunked\r\nContent-Length: 4\r\n\r\n"), 400 },
	{ "chunked, identity", TEXT(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), 501 },
	{ "identity", TEXT(POST "Transfer-Encoding: identity\r\n\r\n"), 501 },
	{ "empty transfer coding", TEXT(POST "Transfer-Encoding:\r\n\r\n"), 501 },
	{ "two Transfer-Encoding", TEXT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), 400 },
	{ "chunked and identity in two lines", TEXT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"), 400 },
	{ "chunked in HTTP/1.0", TEXT("POST /a HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"), 400 },
	{ "vertical tab before chunked", TEXT(POST "Transfer-Encoding:\vchunked\r\n\r\n"), 400 },
	{ "space before the colon", TEXT(POST "Content-Length : 3\r\n\r\n"), 400 },
	{ "tab before the colon", TEXT(POST "Content-Length\t: 3\r\n\r\n"), 400 },
	{ "space before the first name", TEXT("GET / HTTP/1.1\r\n " HOST "\r\n"), 400 },
	{ "folded header", TEXT(POST "X-A: b\r\n c\r\n\r\n"), 400 },
	{ "header folded by a tab", TEXT(POST "X-A: b\r\n\tc\r\n\r\n"), 400 },
	{ "bare LF lines", TEXT("GET / HTTP/1.1\nHost: chat.example\n\n"), 400 },
	{ "bare LF after a header", TEXT("GET / HTTP/1.1\r\nHost: chat.example\n\r\n"), 400 },
	{ "bare LF as the end", TEXT("GET / HTTP/1.1\r\n" HOST "\n"), 400 },
	{ "bare CR in a value", TEXT(POST "X-A: b\rc\r\n\r\n"), 400 },
	{ "bare CR as the end", TEXT(POST "\rX"), 400 },
	{ "CR CR LF", TEXT(POST "X-A: b\r\r\n\r\n"), 400 },
	{ "NUL in a value", TEXT(POST "X-A: b\0c\r\n\r\n"), 400 },
	{ "NUL in a name", TEXT(POST "X\0A: b\r\n\r\n"), 400 },
	{ "escape in a value", TEXT(POST "X-A: \033[1m\r\n\r\n"), 400 },
	{ "delete in a value", TEXT(POST "X-A: \177\r\n\r\n"), 400 },
	{ "value that is not UTF-8", TEXT(POST "X-A: \xe9t\xe9\r\n\r\n"), 400 },
	{ "no colon", TEXT(POST "X-A\r\n\r\n"), 400 },
	{ "no name", TEXT(POST ": b\r\n\r\n"), 400 },
	{ "bracket in a name", TEXT(POST "X[A]: b\r\n\r\n"), 400 },
	{ "letter beyond ASCII in a name", TEXT(POST "X-\xc3\xa9: b\r\n\r\n"), 400 },

	{ "no Host in 1.1", TEXT("GET / HTTP/1.1\r\nX-A: b\r\n\r\n"), 400 },
	{ "no header at all in 1.1", TEXT("GET / HTTP/1.1\r\n\r\n"), 400 },
	{ "two Host", TEXT("GET / HTTP/1.1\r\n" HOST "Host: other.example\r\n\r\n"), 400 },
	{ "two equal Host", TEXT("GET / HTTP/1.1\r\n" HOST HOST "\r\n"), 400 },
	{ "two Host in 1.0", TEXT("GET / HTTP/1.0\r\n" HOST HOST "\r\n"), 400 },
	{ "empty Host", TEXT("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400 },
	{ "Host with user", TEXT("GET / HTTP/1.1\r\nHost: a@chat.example\r\n\r\n"), 400 },
	{ "Host with path", TEXT("GET / HTTP/1.1\r\nHost: chat.example/x\r\n\r\n"), 400 },
	{ "Host with space", TEXT("GET / HTTP/1.1\r\nHost: chat. example\r\n\r\n"), 400 },
	{ "Host list", TEXT("GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n"), 400 },
	{ "Host with a bad port", TEXT("GET / HTTP/1.1\r\nHost: a.example:8x\r\n\r\n"), 400 },
	{ "Host with a great port", TEXT("GET / HTTP/1.1\r\nHost: a.example:65536\r\n\r\n"), 400 },
	{ "Host with two ports", TEXT("GET / HTTP/1.1\r\nHost: a.example:80:81\r\n\r\n"), 400 },
	{ "Host with half a bracket", TEXT("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), 400 },
	{ "Host with text after the bracket", TEXT("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"), 400 },

	{ "empty line first", TEXT("\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "HTTP/0.9", TEXT("GET /\r\n\r\n"), 400 },
	{ "HTTP/1.10", TEXT("GET / HTTP/1.10\r\n" HOST "\r\n"), 400 },
	{ "HTTP/1.2", TEXT("GET / HTTP/1.2\r\n" HOST "\r\n"), 505 },
	{ "HTTP/2.0", TEXT("GET / HTTP/2.0\r\n" HOST "\r\n"), 505 },
	{ "lower-case version", TEXT("GET / http/1.1\r\n" HOST "\r\n"), 400 },
	{ "version without a minor", TEXT("GET / HTTP/1\r\n" HOST "\r\n"), 400 },
	{ "space after the version", TEXT("GET / HTTP/1.1 \r\n" HOST "\r\n"), 400 },
	{ "space in the target", TEXT("GET /a b HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "two spaces", TEXT("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "tab instead of a space", TEXT("GET\t/ HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "space before the method", TEXT(" GET / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "control in the method", TEXT("GE\001T / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "bracket in the method", TEXT("GE(T / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "lower-case method", TEXT("get / HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ "unknown method", TEXT("BREW / HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ "CONNECT", TEXT("CONNECT a.example:443 HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ "TRACE", TEXT("TRACE / HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ "control in the target", TEXT("GET /\001 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "NUL in the target", TEXT("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "beyond ASCII in the target", TEXT("GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "fragment in the target", TEXT("GET /a#b HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "backslash in the target", TEXT("GET /a\\b HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "target without a slash", TEXT("GET a HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "star for GET", TEXT("GET * HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "absolute target of another host", TEXT("GET http://other.example/ HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "absolute target of a longer host", TEXT("GET http://chat.example.org/ HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "absolute target with a user", TEXT("GET http://a@chat.example/ HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "absolute target without a host", TEXT("GET http:/// HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "absolute target of another scheme", TEXT("GET ftp://chat.example/ HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "percent without digits", TEXT("GET /%zz HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "percent at the end", TEXT("GET /%4 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "encoded NUL", TEXT("GET /a%00 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "encoded invalid UTF-8", TEXT("GET /%ff HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "encoded surrogate", TEXT("GET /%ed%a0%80 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "encoded overlong slash", TEXT("GET /%c0%af HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ "unknown expectation", TEXT(POST "Expect: 200-ok\r\nContent-Length: 3\r\n\r\n"), 417 },
	{ "two expectations", TEXT(POST "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"), 417 },
	/* clang-format on */
};

#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static const struct row chunks_refused[] = {
	/* clang-format off */
	{ "size 0x1", TEXT(CHUNKED "0x1\r\na\r\n0\r\n\r\n"), 400 },
	{ "negative size", TEXT(CHUNKED "-1\r\na\r\n0\r\n\r\n"), 400 },
	{ "plus before a size", TEXT(CHUNKED "+1\r\na\r\n0\r\n\r\n"), 400 },
	{ "space before a size", TEXT(CHUNKED " 1\r\na\r\n0\r\n\r\n"), 400 },
	{ "space after a size", TEXT(CHUNKED "1 \r\na\r\n0\r\n\r\n"), 400 },
	{ "no size", TEXT(CHUNKED "\r\na\r\n0\r\n\r\n"), 400 },
	{ "size beyond 2^31", TEXT(CHUNKED "80000001\r\na"), 400 },
	{ "size beyond 2^64", TEXT(CHUNKED "10000000000000001\r\na\r\n0\r\n\r\n"), 400 },
	{ "size with a letter", TEXT(CHUNKED "1g\r\na\r\n0\r\n\r\n"), 400 },
	{ "junk after the data", TEXT(CHUNKED "1\r\nab\r\n0\r\n\r\n"), 400 },
	{ "no CR after the data", TEXT(CHUNKED "1\r\na\n0\r\n\r\n"), 400 },
	{ "data longer than its size", TEXT(CHUNKED "1\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "LF instead of CR LF after a size", TEXT(CHUNKED "1\na\r\n0\r\n\r\n"), 400 },
	{ "LF in an extension", TEXT(CHUNKED "1;a\nb\r\na\r\n0\r\n\r\n"), 400 },
	{ "CR in an extension", TEXT(CHUNKED "1;a\rb\r\na\r\n0\r\n\r\n"), 400 },
	{ "NUL in an extension", TEXT(CHUNKED "1;a=\0\r\na\r\n0\r\n\r\n"), 400 },
	{ "empty extension", TEXT(CHUNKED "1;\r\na\r\n0\r\n\r\n"), 400 },
	{ "extension without a value", TEXT(CHUNKED "1;a=\r\na\r\n0\r\n\r\n"), 400 },
	{ "quoted extension", TEXT(CHUNKED "1;a=\"b\"\r\na\r\n0\r\n\r\n"), 400 },
	{ "bare LF at the very end", TEXT(CHUNKED "0\r\n\n"), 400 },
	{ "bare CR at the very end", TEXT(CHUNKED "0\r\n\rX"), 400 },
	{ "folded trailer", TEXT(CHUNKED "0\r\nX-A: b\r\n c\r\n\r\n"), 400 },
	{ "trailer without a colon", TEXT(CHUNKED "0\r\nX-A\r\n\r\n"), 400 },
	{ "trailer without a name", TEXT(CHUNKED "0\r\n: b\r\n\r\n"), 400 },
	{ "space before a trailer's colon", TEXT(CHUNKED "0\r\nX-A : b\r\n\r\n"), 400 },
	{ "NUL in a trailer", TEXT(CHUNKED "0\r\nX-A: \0\r\n\r\n"), 400 },
	{ "bare LF in a trailer", TEXT(CHUNKED "0\r\nX-A: b\n\r\n"), 400 },
	{ "length in the trailers", TEXT(CHUNKED "0\r\nContent-Length: 5\r\n\r\n"), 400 },
	{ "coding in the trailers", TEXT(CHUNKED "0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400 },
	{ "Host in the trailers", TEXT(CHUNKED "0\r\nX-A: b\r\nhost: a\r\n\r\n"), 400 },
	/* clang-format on */
};

struct taken {
	const char *name;
	const char *data;
	size_t len;
	const char *body; /* of a chunked one */
	size_t rest;	  /* bytes of the next request */
};

static const struct taken taken[] = {
	/* clang-format off */
	{ "GET", TEXT("GET / HTTP/1.1\r\n" HOST "\r\n"), "", 0 },
	{ "GET and another", TEXT("GET / HTTP/1.1\r\n" HOST "\r\nGET / "), "", 6 },
	{ "1.0 without Host", TEXT("GET / HTTP/1.0\r\n\r\n"), "", 0 },
	{ "1.0 with Host", TEXT("GET / HTTP/1.0\r\n" HOST "\r\n"), "", 0 },
	{ "star", TEXT("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), "", 0 },
	{ "absolute target", TEXT("GET HTTP://Chat.example/a HTTP/1.1\r\n" HOST "\r\n"), "", 0 },
	{ "Host with port", TEXT("GET / HTTP/1.1\r\nHost: chat.example:8101\r\n\r\n"), "", 0 },
	{ "IPv6 Host", TEXT("GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n"), "", 0 },
	{ "value without space before it", TEXT("GET / HTTP/1.1\r\nHost:a\r\nX-A:\r\n\r\n"), "", 0 },
	{ "tabs around a value", TEXT("GET / HTTP/1.1\r\nHost:\ta\t\r\n\r\n"), "", 0 },
	{ "length 0", TEXT(POST "Content-Length: 0\r\n\r\n"), "", 0 },
	{ "UTF-8 value", TEXT(POST "X-A: \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\r\n\r\n"), "", 0 },
	{ "chunked", TEXT(CHUNKED "3\r\nabc\r\n0\r\n\r\n"), "abc", 0 },
	{ "chunked in capitals", TEXT(POST "TRANSFER-ENCODING: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"), "a", 0 },
	{ "no chunk but the last", TEXT(CHUNKED "0\r\n\r\n"), "", 0 },
	{ "hexadecimal size", TEXT(CHUNKED "00a\r\n0123456789\r\n0\r\n\r\n"), "0123456789", 0 },
	{ "data that looks like chunks", TEXT(CHUNKED "7\r\n1\r\na\r\n0\r\n0\r\n\r\n"), "1\r\na\r\n0", 0 },
	{ "several chunks and another request", TEXT(CHUNKED "1\r\na\r\n2\r\nbc\r\n0\r\n\r\nGET"), "abc", 3 },
	{ "extensions", TEXT(CHUNKED "1;a;b=c\r\na\r\n0;d\r\n\r\n"), "a", 0 },
	{ "trailers", TEXT(CHUNKED "1\r\na\r\n0\r\nX-A: b\r\nHosts: c\r\n\r\n"), "a", 0 },
	/* clang-format on */
};

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

static void check_refused(const struct row *rows, size_t count)
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
	check_refused(refused, COUNT(refused));
}

Test(http_parse, bodies_that_could_be_read_in_two_ways_are_refused)
{
	check_refused(chunks_refused, COUNT(chunks_refused));
}

Test(http_parse, good_requests_are_taken_and_end_where_they_end)
{
	for (size_t i = 0; i < COUNT(taken); i++) {
		struct verdict verdict =
		    request_read(taken[i].data, taken[i].len, taken[i].len);

		cr_expect_eq(verdict.found, HTTP_DONE, "%s", taken[i].name);
		cr_expect_eq(verdict.used, taken[i].len - taken[i].rest, "%s",
		    taken[i].name);
		cr_expect(verdict.body_len == strlen(taken[i].body) &&
			memcmp(verdict.body, taken[i].body, verdict.body_len) ==
			    0,
		    "%s", taken[i].name);
		check_pieces(taken[i].name, taken[i].data, taken[i].len);
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
	    POST "X-One:  a b \t\r\nX-TWO: 1\r\nx-two: 2\r\n"
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

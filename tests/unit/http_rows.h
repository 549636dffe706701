/*
 * http_rows -- awkward requests: one row a rule.
 *
 * A refused row is what some server or proxy was seen to take, or what two
 * could read differently. The parser's test, the comparison with Node and the
 * fuzzer's first corpus use the same rows.
 */
#ifndef POSTRIDER_TEST_HTTP_ROWS_H
#define POSTRIDER_TEST_HTTP_ROWS_H

#include "common/base/base.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define HOST "Host: chat.example\r\n"
#define POST "POST /a HTTP/1.1\r\n" HOST

struct http_row {
	const char *name;
	const char *data;
	size_t len;
	int status;
};

static const struct http_row http_heads_refused[] = {
	/* clang-format off */
	{ "two different Content-Length", TEXT(POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n"), 400 },
	{ "two equal Content-Length", TEXT(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"), 400 },
	{ "a list of lengths", TEXT(POST "Content-Length: 3, 3\r\n\r\n"), 400 },
	{ "plus before a length", TEXT(POST "Content-Length: +3\r\n\r\n"), 400 },
	{ "minus before a length", TEXT(POST "Content-Length: -3\r\n\r\n"), 400 },
	{ "hexadecimal length", TEXT(POST "Content-Length: 0x3\r\n\r\n"), 400 },
	{ "space within a length", TEXT(POST "Content-Length: 3 3\r\n\r\n"), 400 },
	{ "tab before a length", TEXT(POST "Content-Length:\t3\r\n\r\nabc"), 400 },
	{ "tab after a length", TEXT(POST "Content-Length: 3\t\r\n\r\nabc"), 400 },
	{ "tab after chunked", TEXT(POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"), 501 },
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
	{ "Host with a tab", TEXT("GET / HTTP/1.1\r\nHost:\ta\r\n\r\n"), 400 },
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

static const struct http_row http_chunks_refused[] = {
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

struct http_taken {
	const char *name;
	const char *data;
	size_t len;
	const char *body; /* of a chunked one */
	size_t rest;	  /* bytes of the next request */
};

static const struct http_taken http_taken[] = {
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
	{ "spaces around a value", TEXT("GET / HTTP/1.1\r\nHost:  a  \r\n\r\n"), "", 0 },
	{ "tab in a value", TEXT("GET / HTTP/1.1\r\nHost: a\r\nX-A: \tb\tc\r\n\r\n"), "", 0 },
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

#endif

#include "common/net/http_parse.h"

#include "common/net/http_chars.h"

#include <strings.h>

enum { LENGTH_DIGITS_MAX = 18 };

/* A text in the middle of others. */
struct span {
	const char *data;
	size_t len;
};

/* A head on its way: where the reading is and what failed. */
struct reading {
	struct arena *arena;
	struct http_head *head;
	int status;
};

static bool bad(struct reading *in, int status)
{
	in->status = status;
	return false;
}

static bool is_target(unsigned char c)
{
	return c > 0x20 && c < 0x7f && strchr("\"#<>\\", c) == NULL;
}

static bool all(struct span text, bool (*class)(unsigned char))
{
	for (size_t i = 0; i < text.len; i++)
		if (!class((unsigned char)text.data[i]))
			return false;
	return text.len > 0;
}

static bool span_is(struct span text, const char *word)
{
	return text.len == strlen(word) &&
	    strncasecmp(text.data, word, text.len) == 0;
}

/* Length of the UTF-8 sequence at text, 0: none that is valid. */
static size_t utf8_length(const unsigned char *text, size_t len)
{
	static const struct {
		unsigned char first, last, low, high;
		size_t len;
	} forms[] = {
		{ 0x00, 0x7f, 0x00, 0x00, 1 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	size_t form = 0;

	while (form < COUNT(forms) && text[0] > forms[form].last)
		form++;
	if (form == COUNT(forms) || text[0] < forms[form].first ||
	    forms[form].len > len)
		return 0;
	if (forms[form].len == 1)
		return 1;
	if (text[1] < forms[form].low || text[1] > forms[form].high)
		return 0;
	for (size_t i = 2; i < forms[form].len; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return forms[form].len;
}

static bool is_utf8(const char *text, size_t len)
{
	size_t step;

	for (size_t i = 0; i < len; i += step) {
		step = utf8_length((const unsigned char *)text + i, len - i);
		if (step == 0)
			return false;
	}
	return true;
}

/* Percent-decoded once; NULL: badly encoded, NUL or not UTF-8. */
static const char *decode(struct arena *arena, struct span text, bool form)
{
	char *out = arena_alloc(arena, text.len + 1);
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (form && c == '+')
			c = ' ';
		if (c == '%') {
			int high = i + 2 < text.len
			    ? http_hex((unsigned char)text.data[i + 1])
			    : -1;
			int low = i + 2 < text.len
			    ? http_hex((unsigned char)text.data[i + 2])
			    : -1;

			if (high < 0 || low < 0)
				return NULL;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (c == '\0')
			return NULL;
		out[len++] = c;
	}
	return is_utf8(out, len) ? out : NULL;
}

/* ---- where a head ends ---- */

/*
 * Looks at bytes only, in their order, so that a head that comes in pieces is
 * refused at the same byte as one that comes at once.
 */
static enum http_parse head_scan(
    const char *data, size_t len, size_t *end, int *status)
{
	size_t line = 0;
	bool first = true;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];
		bool after_cr = i > line && data[i - 1] == '\r';

		*status = 400;
		if (after_cr != (c == '\n') ||
		    (c != '\r' && c != '\n' && !http_is_value(c)))
			return HTTP_BAD;
		*status = first ? 414 : 431;
		if (i - line > HTTP_LINE_MAX)
			return HTTP_BAD;
		*status = 431;
		if (i >= HTTP_HEAD_MAX)
			return HTTP_BAD;
		if (c != '\n')
			continue;
		*end = i + 1;
		*status = 400;
		if (i == line + 1)
			return first ? HTTP_BAD : HTTP_DONE;
		line = i + 1;
		first = false;
	}
	return HTTP_MORE;
}

/* ---- the request line ---- */

/* Cuts the text before the first of stop (or all) off from. */
static struct span cut(struct span *from, char stop)
{
	const char *at = memchr(from->data, stop, from->len);
	struct span word = *from;

	if (at == NULL) {
		*from = (struct span){ from->data + from->len, 0 };
		return word;
	}
	word.len = (size_t)(at - from->data);
	from->data += word.len + 1;
	from->len -= word.len + 1;
	return word;
}

static bool read_method(struct reading *in, struct span method)
{
	static const char *const known[] = { "GET", "HEAD", "POST", "PUT",
		"PATCH", "DELETE", "OPTIONS" };

	if (!all(method, http_is_token))
		return bad(in, 400);
	in->head->method = arena_textn(in->arena, method.data, method.len);
	for (size_t i = 0; i < COUNT(known); i++)
		if (strcmp(in->head->method, known[i]) == 0)
			return true;
	return bad(in, 501);
}

static bool read_version(struct reading *in, struct span version)
{
	const char *text = version.data;

	if (version.len != 8 || memcmp(text, "HTTP/", 5) != 0 ||
	    !http_is_digit((unsigned char)text[5]) || text[6] != '.' ||
	    !http_is_digit((unsigned char)text[7]))
		return bad(in, 400);
	if (text[5] != '1' || text[7] > '1')
		return bad(in, 505);
	in->head->minor = text[7] - '0';
	return true;
}

static bool read_request_line(struct reading *in, struct span line)
{
	struct span method = cut(&line, ' ');
	struct span target = cut(&line, ' ');

	if (!all(target, is_target))
		return bad(in, 400);
	in->head->target = arena_textn(in->arena, target.data, target.len);
	return read_method(in, method) && read_version(in, line);
}

/* ---- header lines ---- */

/* Spaces only: a tab next to a length or a host is read in two ways. */
static struct span trim(struct span text)
{
	while (text.len > 0 && *text.data == ' ') {
		text.data++;
		text.len--;
	}
	while (text.len > 0 && text.data[text.len - 1] == ' ')
		text.len--;
	return text;
}

static bool read_header(struct reading *in, struct span line)
{
	struct http_header *header;
	struct span name;
	char *name_lower;

	if (in->head->header_count == HTTP_HEADERS_MAX)
		return bad(in, 431);
	if (memchr(line.data, ':', line.len) == NULL)
		return bad(in, 400);
	name = cut(&line, ':');
	line = trim(line);
	if (!all(name, http_is_token) || !is_utf8(line.data, line.len))
		return bad(in, 400);
	name_lower = arena_textn(in->arena, name.data, name.len);
	for (size_t i = 0; i < name.len; i++)
		name_lower[i] = http_lower(name_lower[i]);
	header = &in->head->headers[in->head->header_count++];
	header->name = name_lower;
	header->value = arena_textn(in->arena, line.data, line.len);
	return true;
}

static bool read_lines(struct reading *in, struct span text)
{
	struct span line = cut(&text, '\n');

	line.len--;
	if (!read_request_line(in, line))
		return false;
	in->head->headers = arena_array(
	    in->arena, HTTP_HEADERS_MAX, sizeof(struct http_header));
	for (;;) {
		line = cut(&text, '\n');
		line.len--;
		if (line.len == 0)
			return true;
		if (!read_header(in, line))
			return false;
	}
}

/* ---- what the headers mean together ---- */

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Nothing, or ":" and a port. */
static bool port_is_good(const char *text)
{
	size_t digits;
	long port;

	if (*text != ':')
		return *text == '\0';
	digits = strspn(text + 1, DIGITS);
	if (digits == 0 || digits > 5 || text[1 + digits] != '\0')
		return false;
	port = strtol(text + 1, NULL, 10);
	return port > 0 && port <= 65535;
}

/* A name or an address, and perhaps a port: nothing two could read apart. */
static bool host_is_good(const char *host)
{
	size_t len;

	if (*host == '[') {
		len = strspn(host + 1, DIGITS "abcdefABCDEF:.");
		return len > 0 && host[1 + len] == ']' &&
		    port_is_good(host + len + 2);
	}
	len = strspn(host, LETTERS DIGITS "-._");
	return len > 0 && port_is_good(host + len);
}

static bool read_host(struct reading *in)
{
	size_t count = http_head_count(in->head, "host");
	const char *host = http_head_get(in->head, "host");

	if (count == 0 && in->head->minor == 0)
		return true;
	if (host == NULL || !host_is_good(host))
		return bad(in, 400);
	return true;
}

/* The length of "http://" or "https://" at the start, or 0. */
static size_t scheme_length(const char *target)
{
	if (strncasecmp(target, "http://", 7) == 0)
		return 7;
	return strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
}

static bool read_target(struct reading *in)
{
	struct http_head *head = in->head;
	struct span rest = { head->target, strlen(head->target) };
	size_t scheme = scheme_length(head->target);
	struct span path;

	if (scheme > 0) {
		const char *host = http_head_get(head, "host");
		size_t len = strcspn(rest.data + scheme, "/?");

		if (host == NULL ||
		    !span_is((struct span){ rest.data + scheme, len }, host))
			return bad(in, 400);
		rest.data += scheme + len;
		rest.len -= scheme + len;
	} else if (*rest.data != '/' &&
	    !(span_is(rest, "*") && strcmp(head->method, "OPTIONS") == 0)) {
		return bad(in, 400);
	}
	path = cut(&rest, '?');
	head->query = arena_textn(in->arena, rest.data, rest.len);
	head->path = path.len > 0 ? decode(in->arena, path, false) : "/";
	return head->path != NULL || bad(in, 400);
}

static bool read_length(struct reading *in, const char *value)
{
	struct span digits = { value, strlen(value) };
	int64_t length = 0;

	if (!all(digits, http_is_digit) || (digits.len > 1 && *value == '0'))
		return bad(in, 400);
	if (digits.len > LENGTH_DIGITS_MAX)
		return bad(in, 413);
	for (size_t i = 0; i < digits.len; i++)
		length = length * 10 + (value[i] - '0');
	in->head->content_length = length;
	in->head->has_body = length > 0;
	return true;
}

static bool read_framing(struct reading *in)
{
	struct http_head *head = in->head;
	size_t lengths = http_head_count(head, "content-length");
	size_t codings = http_head_count(head, "transfer-encoding");

	head->content_length = -1;
	if (lengths + codings > 1 || (codings > 0 && head->minor == 0))
		return bad(in, 400);
	if (lengths == 1)
		return read_length(in, http_head_get(head, "content-length"));
	if (codings == 0)
		return true;
	if (strcasecmp(http_head_get(head, "transfer-encoding"), "chunked") !=
	    0)
		return bad(in, 501);
	head->chunked = true;
	head->has_body = true;
	return true;
}

static bool read_expect(struct reading *in)
{
	struct http_head *head = in->head;
	size_t count = http_head_count(head, "expect");
	const char *expect = http_head_get(head, "expect");

	if (count == 0 || head->minor == 0)
		return true;
	if (expect == NULL || strcasecmp(expect, "100-continue") != 0)
		return bad(in, 417);
	head->expect_continue = head->has_body;
	return true;
}

/* Is word one of the comma list's members? */
static bool list_has(const char *list, const char *word)
{
	struct span rest = { list, strlen(list) };

	while (rest.len > 0)
		if (span_is(trim(cut(&rest, ',')), word))
			return true;
	return false;
}

/* After a change of protocol was asked for, no second request is read. */
static void read_connection(struct http_head *head)
{
	bool close = false, keep = false, upgrade = false;

	for (size_t i = 0; i < head->header_count; i++) {
		const struct http_header *header = &head->headers[i];

		upgrade |= strcmp(header->name, "upgrade") == 0;
		if (strcmp(header->name, "connection") != 0)
			continue;
		close |= list_has(header->value, "close");
		keep |= list_has(header->value, "keep-alive");
	}
	head->keep_alive = !close && !upgrade && (head->minor == 1 || keep);
}

/* ---- public ---- */

enum http_parse http_parse_head(struct arena *arena, const char *data,
    size_t len, struct http_head *head, size_t *used, int *status)
{
	struct reading in = { .arena = arena, .head = head, .status = 400 };
	struct span text = { data, 0 };
	enum http_parse found = head_scan(data, len, &text.len, status);

	*used = 0;
	if (found != HTTP_DONE)
		return found;
	*head = (struct http_head){ .method = NULL };
	if (read_lines(&in, text) && read_host(&in) && read_target(&in) &&
	    read_framing(&in) && read_expect(&in)) {
		read_connection(head);
		*used = text.len;
		return HTTP_DONE;
	}
	*status = in.status;
	return HTTP_BAD;
}

size_t http_head_count(const struct http_head *head, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < head->header_count; i++)
		count += strcmp(head->headers[i].name, name) == 0;
	return count;
}

const char *http_head_get(const struct http_head *head, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < head->header_count; i++) {
		if (strcmp(head->headers[i].name, name) != 0)
			continue;
		if (value != NULL)
			return NULL;
		value = head->headers[i].value;
	}
	return value;
}

const char *http_query_get(
    struct arena *arena, const char *query, const char *name)
{
	struct span rest = { query, strlen(query) };

	while (rest.len > 0) {
		struct span value = cut(&rest, '&');
		struct span key = cut(&value, '=');
		const char *found = decode(arena, key, true);

		if (found != NULL && strcmp(found, name) == 0)
			return decode(arena, value, true);
	}
	return NULL;
}

#include <arpa/inet.h>
#include <curl/curl.h>
#include <idn2.h>
#include <strings.h>

#include "common/net/url.h"

enum {
	URL_LEN_MAX = 8192,
	HOST_LEN_MAX = 253,
	LABEL_LEN_MAX = 63,
	PORT_HTTP = 80,
	PORT_HTTPS = 443,
	PORTS_RESERVED = 1024
};

/* A URL as it was written, before anybody interpreted it. */
struct written {
	const char *authority;
	size_t authority_len;
	const char *rest; /* path, query, fragment */
};

static void curl_text_free(char **text)
{
	curl_free(*text);
	*text = NULL;
}

static void curl_url_end(CURLU **url)
{
	curl_url_cleanup(*url);
	*url = NULL;
}

static void idn_text_free(uint8_t **text)
{
	if (*text)
		idn2_free(*text);
	*text = NULL;
}

static bool is_ascii(const char *text)
{
	while (*text && (unsigned char)*text < 0x80)
		text++;
	return !*text;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && strcasecmp(text + len - end_len, end) == 0;
}

static const char *after_scheme(const char *url)
{
	if (strncasecmp(url, "https://", 8) == 0)
		return url + 8;
	return strncasecmp(url, "http://", 7) == 0 ? url + 7 : NULL;
}

/* White space, controls and backslashes are nowhere in a URL we accept. */
static bool written_split(const char *url, struct written *out)
{
	const char *start = after_scheme(url);

	if (!start || strnlen(url, URL_LEN_MAX + 1) > URL_LEN_MAX)
		return false;
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '\\')
			return false;
	out->authority = start;
	out->authority_len = strcspn(start, "/?#");
	out->rest = start + out->authority_len;
	return true;
}

/* No user info, no escapes, no empty port. */
static bool authority_plain(const struct written *url)
{
	size_t len = url->authority_len;

	return len && !memchr(url->authority, '@', len) &&
	    !memchr(url->authority, '%', len) && url->authority[len - 1] != ':';
}

/*
 * The parser that connects may have read another host than the one that is
 * written: 0x7f.1 and 2130706433 are 127.0.0.1 to it. Such hosts are refused.
 */
static bool host_as_written(const struct written *url, const char *host)
{
	size_t len = strlen(host);
	const char *after = url->authority + len;

	return len <= url->authority_len &&
	    strncasecmp(url->authority, host, len) == 0 &&
	    (len == url->authority_len || *after == ':');
}

/* One spelling an address; IPv4 in IPv6's clothes is refused. */
static const char *host_v6(struct arena *arena, const char *host)
{
	char inner[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN];
	struct in6_addr addr;
	size_t len = strlen(host);

	if (len < 4 || len - 2 >= sizeof(inner) || host[len - 1] != ']')
		return NULL;
	snprintf(inner, sizeof(inner), "%.*s", (int)len - 2, host + 1);
	if (inet_pton(AF_INET6, inner, &addr) != 1 ||
	    IN6_IS_ADDR_V4MAPPED(&addr) || IN6_IS_ADDR_V4COMPAT(&addr))
		return NULL;
	inet_ntop(AF_INET6, &addr, text, sizeof(text));
	return arena_printf(arena, "[%s]", text);
}

/* Letters, digits, hyphens inside. Nothing is dropped or repaired. */
static bool label_ok(const char *label, size_t len)
{
	if (!len || len > LABEL_LEN_MAX || label[0] == '-' ||
	    label[len - 1] == '-')
		return false;
	return strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-") >= len;
}

/* A last label that is a number makes it an address: a normal one or none. */
static bool number_ok(const char *host, const char *label)
{
	struct in_addr addr;
	bool number = !label[strspn(label, "0123456789")] ||
	    (strncmp(label, "0x", 2) == 0 &&
		!label[2 + strspn(label + 2, "0123456789abcdef")]);

	return !number || inet_pton(AF_INET, host, &addr) == 1;
}

static bool name_ok(const char *host)
{
	const char *label = host;
	size_t len = strlen(host);

	if (!len || len > HOST_LEN_MAX)
		return false;
	for (;;) {
		len = strcspn(label, ".");
		if (!label_ok(label, len))
			return false;
		if (!label[len])
			return number_ok(host, label);
		label += len + 1;
	}
}

static char *lower(struct arena *arena, const char *text)
{
	char *copy = arena_text(arena, text);

	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return copy;
}

/*
 * libidn2 is asked without its STD3 rules: it would drop what they forbid
 * (a_b becomes ab), where name_ok refuses it. curl's own conversion depends on
 * the locale.
 */
static const char *host_punycode(struct arena *arena, const char *host)
{
	AUTO(idn_text_free) uint8_t *ascii = NULL;

	if (is_ascii(host) && !strstr(host, "xn--"))
		return host;
	if (idn2_lookup_u8((const uint8_t *)host, &ascii,
		IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) != IDN2_OK)
		return NULL;
	return lower(arena, (const char *)ascii);
}

/* NULL: not a host. */
static const char *host_normal(struct arena *arena, const char *host)
{
	const char *ascii;
	char *name;
	size_t len;

	if (host[0] == '[')
		return host_v6(arena, host);
	ascii = host_punycode(arena, lower(arena, host));
	if (!ascii)
		return NULL;
	name = arena_text(arena, ascii);
	len = strlen(name);
	if (len > 1 && name[len - 1] == '.')
		name[len - 1] = '\0';
	return name_ok(name) ? name : NULL;
}

static int port_of(CURLU *url, bool plain)
{
	AUTO(curl_text_free) char *text = NULL;

	if (curl_url_get(url, CURLUPART_PORT, &text, 0) != CURLUE_OK)
		return plain ? PORT_HTTP : PORT_HTTPS;
	return (int)strtol(text, NULL, 10);
}

static const char *origin_text(
    struct arena *arena, const char *host, int port, bool plain)
{
	const char *scheme = plain ? "http" : "https";

	if (port == (plain ? PORT_HTTP : PORT_HTTPS))
		return arena_printf(arena, "%s://%s", scheme, host);
	return arena_printf(arena, "%s://%s:%d", scheme, host, port);
}

/* Scheme, host and port; plain http with any host. */
static bool parse(struct arena *arena, const char *url, struct written *written,
    struct origin *origin)
{
	AUTO(curl_url_end) CURLU *parsed = curl_url();
	AUTO(curl_text_free) char *host = NULL;
	struct origin out;

	if (!parsed)
		abort();
	if (!written_split(url, written) || !authority_plain(written) ||
	    curl_url_set(parsed, CURLUPART_URL, url, CURLU_DISALLOW_USER) ||
	    curl_url_get(parsed, CURLUPART_HOST, &host, 0))
		return false;
	out.plain = written->authority - url == (ptrdiff_t)strlen("http://");
	if (host[0] != '[' && !host_as_written(written, host))
		return false;
	out.host = host_normal(arena, host);
	out.port = port_of(parsed, out.plain);
	if (!out.host || out.port < 1 || out.port > UINT16_MAX)
		return false;
	out.text = origin_text(arena, out.host, out.port, out.plain);
	*origin = out;
	return true;
}

bool url_parse(struct arena *arena, const char *url, struct origin *origin,
    const char **path)
{
	struct written written;
	size_t len;

	if (!parse(arena, url, &written, origin))
		return false;
	len = strcspn(written.rest, "#");
	*path = arena_printf(arena, "%s%.*s", *written.rest == '/' ? "" : "/",
	    (int)len, written.rest);
	return true;
}

const char *url_join(
    struct arena *arena, const char *base, const char *location)
{
	AUTO(curl_url_end) CURLU *url = curl_url();
	AUTO(curl_text_free) char *text = NULL;
	struct origin origin;
	const char *path;

	if (!url)
		abort();
	/* A whole URL is read as it is written, before it is repaired. */
	if (strnlen(location, URL_LEN_MAX + 1) > URL_LEN_MAX ||
	    (after_scheme(location) &&
		!url_parse(arena, location, &origin, &path)) ||
	    curl_url_set(url, CURLUPART_URL, base, 0) != CURLUE_OK ||
	    curl_url_set(url, CURLUPART_URL, location, CURLU_DISALLOW_USER) !=
		CURLUE_OK ||
	    curl_url_get(url, CURLUPART_URL, &text, 0) != CURLUE_OK ||
	    !url_parse(arena, text, &origin, &path))
		return NULL;
	return arena_printf(arena, "%s%s", origin.text, path);
}

bool origin_parse(struct arena *arena, const char *url, struct origin *origin)
{
	struct written written;
	struct origin out;

	if (!parse(arena, url, &written, &out) ||
	    (out.plain && !host_is_local(out.host)))
		return false;
	*origin = out;
	return true;
}

const char *instance_host(struct arena *arena, const char *instance, int *port)
{
	struct written written;
	struct origin origin;
	const char *url = instance;

	if (!strstr(instance, "://"))
		url = arena_printf(arena, "https://%s", instance);
	if (!parse(arena, url, &written, &origin) ||
	    (origin.plain && !host_is_local(origin.host)))
		return NULL;
	/* An origin may end in a slash; a bare host is nothing but a host. */
	if (*written.rest &&
	    (url != instance || strcmp(written.rest, "/") != 0))
		return NULL;
	*port = origin.port;
	if (origin.port == (origin.plain ? PORT_HTTP : PORT_HTTPS))
		*port = 0;
	return origin.host;
}

bool url_has_host(struct arena *arena, const char *url, const char *host)
{
	struct written written;
	struct origin origin;

	return parse(arena, url, &written, &origin) &&
	    strcmp(origin.host, host) == 0;
}

bool host_is_local(const char *host)
{
	struct in_addr addr;

	if (strcasecmp(host, "localhost") == 0 ||
	    ends_with(host, ".localhost") || strcmp(host, "[::1]") == 0 ||
	    strcmp(host, "::1") == 0)
		return true;
	return inet_pton(AF_INET, host, &addr) == 1 &&
	    (ntohl(addr.s_addr) >> 24) == 127;
}

bool port_is_web(int port)
{
	/* Of the Fetch standard's bad ports those above the reserved ones. */
	static const int barred[] = { 1719, 1720, 1723, 2049, 3659, 4045, 4190,
		5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
		6697, 10080 };

	if (port < PORTS_RESERVED)
		return port == PORT_HTTP || port == PORT_HTTPS;
	for (size_t i = 0; i < COUNT(barred); i++)
		if (barred[i] == port)
			return false;
	return true;
}

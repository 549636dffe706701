#include <arpa/inet.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/net/addr.h"
#include "common/net/client_easy.h"
#include "common/net/url.h"

enum {
	IDLE_MAX_S = 4,	      /* servers commonly close after 5 s */
	LIFETIME_MAX_S = 300, /* so that a moved name is noticed */
	ANSWER_HEAD_MAX = 65536,
	RETRY_MAX_S = 2 * 86400,
	METHOD_LEN_MAX = 16
};

static struct curl_slist *list_add(struct curl_slist *list, const char *text)
{
	return client_known(curl_slist_append(list, text));
}

/* ---- the address guard ---- */

static bool address_ok(
    const struct client_call *call, const struct sockaddr *addr)
{
	return call->policy->allow_private ||
	    (!call->plain && addr_is_public(addr));
}

/* Sees each resolved address before it is connected to. */
static curl_socket_t on_open(
    void *arg, curlsocktype purpose UNUSED, struct curl_sockaddr *address)
{
	struct client_call *call = arg;

	if (!address_ok(call, &address->addr)) {
		call->addresses_refused++;
		return CURL_SOCKET_BAD;
	}
	call->addresses_tried++;
	call->opened = true;
	return socket(address->family, address->socktype | SOCK_CLOEXEC,
	    address->protocol);
}

static bool peer_ok(const struct client_call *call, const char *text)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return address_ok(call, (const struct sockaddr *)&v4);
	if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		return address_ok(call, (const struct sockaddr *)&v6);
	return false;
}

/*
 * Runs before each sending, on reused connections too. curl by itself sends
 * again when a reused connection turns out dead, perhaps on another old one;
 * only a fresh one may be tried, once.
 */
static int on_ready(void *arg, char *remote_ip, char *local_ip UNUSED,
    int remote_port UNUSED, int local_port UNUSED)
{
	struct client_call *call = arg;

	if (!peer_ok(call, remote_ip)) {
		call->addresses_refused++;
		return CURL_PREREQFUNC_ABORT;
	}
	if (call->sends > 0 && !call->opened)
		call->stale = true;
	if (call->stale || call->sends == CLIENT_SENDS_MAX)
		return CURL_PREREQFUNC_ABORT;
	call->sends++;
	call->opened = false;
	return CURL_PREREQFUNC_OK;
}

/* ---- the answer ---- */

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
	struct client_call *call = arg;
	size_t len = size * count;

	call->head_bytes += len;
	if (call->head_bytes > ANSWER_HEAD_MAX) {
		call->too_large = true;
		return 0;
	}
	/* An interim answer's end is followed by another status line. */
	call->head_done = len <= 2 && (data[0] == '\r' || data[0] == '\n');
	return len;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct client_call *call = arg;
	size_t len = size * count;

	buf_add(&call->body, data, len);
	if (buf_ok(&call->body))
		return len;
	call->too_large = true;
	return 0;
}

/* ---- the request ---- */

static const char *trim(struct arena *arena, const char *text, size_t len)
{
	while (len && *text == ' ')
		text++, len--;
	while (len && text[len - 1] == ' ')
		len--;
	return arena_textn(arena, text, len);
}

/*
 * *.localhost is this machine whatever a name server says. The setting comes
 * last: later entries replace earlier ones.
 */
static void set_resolve(struct client_call *call, const struct origin *origin,
    struct arena *scratch)
{
	struct in_addr addr;
	bool name = origin->host[0] != '[' &&
	    inet_pton(AF_INET, origin->host, &addr) != 1;

	if (name && host_is_local(origin->host))
		call->resolve = list_add(NULL,
		    arena_printf(scratch, "%s:%d:127.0.0.1", origin->host,
			origin->port));
	for (const struct curl_slist *e = call->policy->resolve; e; e = e->next)
		call->resolve = list_add(call->resolve, e->data);
	if (call->resolve)
		EASY_SET(call->easy, CURLOPT_RESOLVE, call->resolve);
}

static bool header_ok(const struct http_header *header)
{
	const char *name = header->name;

	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c >= 0x7f || *c == ':')
			return false;
	for (const char *c = header->value; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\t')
			return false;
	return *name != '\0' && strcasecmp(name, "expect") != 0;
}

static bool set_headers(struct client_call *call,
    const struct client_request *request, struct arena *scratch)
{
	bool typed = false;

	call->headers = list_add(NULL, "Expect:");
	for (size_t i = 0; i < request->header_count; i++) {
		const struct http_header *h = &request->headers[i];

		if (!header_ok(h))
			return false;
		/* curl's way of writing a header without a value. */
		call->headers = list_add(call->headers,
		    arena_printf(scratch, *h->value ? "%s: %s" : "%s;%s",
			h->name, h->value));
		typed |= strcasecmp(h->name, "content-type") == 0;
	}
	if (!typed)
		call->headers = list_add(call->headers, "Content-Type:");
	EASY_SET(call->easy, CURLOPT_HTTPHEADER, call->headers);
	return true;
}

static bool method_ok(const char *method)
{
	size_t len = strlen(method);

	return len && len <= METHOD_LEN_MAX &&
	    strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == len;
}

static void set_method(CURL *easy, const struct client_request *request)
{
	bool body = request->body.len > 0 || *request->method == 'P';

	if (strcmp(request->method, "HEAD") == 0)
		EASY_SET(easy, CURLOPT_NOBODY, 1L);
	if (body) {
		EASY_SET(easy, CURLOPT_POST, 1L);
		EASY_SET(easy, CURLOPT_POSTFIELDSIZE_LARGE,
		    (curl_off_t)request->body.len);
		EASY_SET(easy, CURLOPT_POSTFIELDS,
		    request->body.len ? request->body.data : "");
	}
	EASY_SET(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_transfer(
    struct client_call *call, const struct client_request *request)
{
	CURL *easy = call->easy;

	EASY_SET(easy, CURLOPT_PRIVATE, call);
	EASY_SET(easy, CURLOPT_ERRORBUFFER, call->error);
	EASY_SET(easy, CURLOPT_WRITEFUNCTION, on_body);
	EASY_SET(easy, CURLOPT_WRITEDATA, call);
	EASY_SET(easy, CURLOPT_HEADERFUNCTION, on_header);
	EASY_SET(easy, CURLOPT_HEADERDATA, call);
	EASY_SET(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	EASY_SET(easy, CURLOPT_OPENSOCKETDATA, call);
	EASY_SET(easy, CURLOPT_PREREQFUNCTION, on_ready);
	EASY_SET(easy, CURLOPT_PREREQDATA, call);
	EASY_SET(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	EASY_SET(easy, CURLOPT_CONNECTTIMEOUT_MS,
	    (long)(request->connect_ms ? request->connect_ms
				       : request->timeout_ms));
	EASY_SET(easy, CURLOPT_LOW_SPEED_LIMIT, request->stall_s ? 1L : 0L);
	EASY_SET(easy, CURLOPT_LOW_SPEED_TIME, (long)request->stall_s);
	EASY_SET(
	    easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)request->answer_max);
	EASY_SET(easy, CURLOPT_FRESH_CONNECT, (long)request->once);
	EASY_SET(easy, CURLOPT_FORBID_REUSE, (long)request->once);
}

static void set_policy(const struct client_policy *policy, CURL *easy)
{
	EASY_SET(easy, CURLOPT_NOSIGNAL, 1L);
	/* A look-up that hangs is left behind, not waited for. */
	EASY_SET(easy, CURLOPT_QUICK_EXIT, 1L);
	EASY_SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	EASY_SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	EASY_SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
	EASY_SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
	EASY_SET(easy, CURLOPT_PATH_AS_IS, 1L);
	EASY_SET(easy, CURLOPT_PROXY, "");
	EASY_SET(easy, CURLOPT_NOPROXY, "*");
	EASY_SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	EASY_SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	EASY_SET(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_MAX_S);
	EASY_SET(easy, CURLOPT_MAXLIFETIME_CONN, (long)LIFETIME_MAX_S);
	if (policy->user_agent)
		EASY_SET(easy, CURLOPT_USERAGENT, policy->user_agent);
	/*
	 * curl keeps the system's bundle in memory only if there is no
	 * directory of certificates, and otherwise reads it again for each
	 * connection (30 ms). With ca_file the directory stays, beside it.
	 */
	if (policy->ca_file)
		EASY_SET(easy, CURLOPT_CAINFO, policy->ca_file);
	else
		EASY_SET(easy, CURLOPT_CAPATH, NULL);
}

static bool refuse(
    struct client_call *call, enum client_outcome outcome, const char *why)
{
	call->refusal = why;
	call->refusal_outcome = outcome;
	return false;
}

/* ---- for client.c ---- */

void client_taken(CURLcode code)
{
	if (code != CURLE_OK)
		abort();
}

void *client_known(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

struct curl_slist *client_resolve_list(const char *setting)
{
	struct arena *arena = arena_new();
	struct curl_slist *list = NULL;
	const char *entry;

	while (setting && *setting) {
		size_t len = strcspn(setting, ",");

		entry = trim(arena, setting, len);
		if (*entry)
			list = list_add(list, entry);
		setting += len + (setting[len] == ',');
	}
	arena_free(&arena);
	return list;
}

bool client_easy_init(struct client_call *call,
    const struct client_request *request, struct arena *scratch)
{
	struct origin origin;
	const char *path;

	call->easy = client_known(curl_easy_init());
	if (!url_parse(scratch, request->url, &origin, &path))
		return refuse(call, CLIENT_REFUSED_ADDRESS, "not a usable URL");
	call->plain = origin.plain;
	if (origin.plain && !call->policy->allow_private)
		return refuse(call, CLIENT_REFUSED_ADDRESS,
		    "plain http to another machine");
	if (!method_ok(request->method) || !set_headers(call, request, scratch))
		return refuse(call, CLIENT_NO_CONNECTION,
		    "not a usable method or header");
	set_policy(call->policy, call->easy);
	set_transfer(call, request);
	set_method(call->easy, request);
	set_resolve(call, &origin, scratch);
	EASY_SET(call->easy, CURLOPT_URL,
	    arena_printf(scratch, "%s%s", origin.text, path));
	return true;
}

void client_easy_done(struct client_call *call)
{
	curl_easy_cleanup(call->easy);
	call->easy = NULL;
	curl_slist_free_all(call->headers);
	curl_slist_free_all(call->resolve);
	buf_done(&call->body);
}

const char *client_easy_location(CURL *easy)
{
	struct curl_header *header;

	return curl_easy_header(
		   easy, "Location", 0, CURLH_HEADER, -1, &header) == CURLHE_OK
	    ? header->value
	    : NULL;
}

/* Seconds or a date. */
int64_t client_easy_retry_after_ms(CURL *easy)
{
	struct curl_header *header;
	int64_t seconds;
	time_t when;

	if (curl_easy_header(
		easy, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
		return -1;
	if (*header->value &&
	    !header->value[strspn(header->value, "0123456789")]) {
		seconds = strtoll(header->value, NULL, 10);
	} else {
		when = curl_getdate(header->value, NULL);
		if (when == -1)
			return -1;
		seconds = when - clock_wall_ms() / 1000;
	}
	if (seconds < 0)
		seconds = 0;
	return (seconds < RETRY_MAX_S ? seconds : RETRY_MAX_S) * 1000;
}

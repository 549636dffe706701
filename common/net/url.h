/*
 * url -- origins and hosts, parsed by the parser that connects (curl_url).
 *
 * An origin is scheme://host[:port] without a slash: lower case, punycode,
 * no default port, no trailing dot, no user info. https always; http only for
 * localhost, *.localhost and loopback addresses. A host is an origin's host
 * alone. All spellings of one peer give one text (known-fault class: look-
 * alike hosts, trailing dots, default ports, Unicode).
 *
 * Any thread. Texts live in the arena.
 */
#ifndef POSTRIDER_URL_H
#define POSTRIDER_URL_H

#include "common/base/arena.h"

struct origin {
	const char *text; /* https://chat.example */
	const char *host; /* chat.example; IPv6 in brackets */
	int port;	  /* 443 when absent */
	bool plain;	  /* http */
};

/* From any URL: path, query, fragment are dropped. False: not acceptable. */
MUST_CHECK bool origin_parse(
    struct arena *arena, const char *url, struct origin *origin);

/*
 * As origin_parse, but plain http with any host: whether it may be used is
 * the connection's question. *path: what a request line carries, "/" at least.
 */
MUST_CHECK bool url_parse(struct arena *arena, const char *url,
    struct origin *origin, const char **path);

/* What a Location header of an answer to base means; NULL: no http(s) URL. */
const char *url_join(
    struct arena *arena, const char *base, const char *location);

/*
 * From what events call homeInstance: a full origin or a bare host, with or
 * without port. Gives the normal host; *port gets the named port or 0.
 * NULL: not a host (empty, user info, path, fragment, white space...).
 */
const char *instance_host(struct arena *arena, const char *instance, int *port);

/* Does url (of a file) point to exactly this host, over http(s)? */
bool url_has_host(struct arena *arena, const char *url, const char *host);

/* May this host be spoken to over plain http? */
bool host_is_local(const char *host);

/* May a stranger's web server be there? Not where other services are: below
 * 1024 nowhere but at 80 and 443, above it not where browsers refuse, too. */
bool port_is_web(int port);

#endif

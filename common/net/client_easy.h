/*
 * client_easy -- one request as a curl handle; of client.c only.
 *
 * What a request may do is settled here: the options of the handle, which
 * addresses it may use, how often it is sent, how much of an answer is taken.
 * client.c runs the handles. Loop thread only.
 */
#ifndef POSTRIDER_CLIENT_EASY_H
#define POSTRIDER_CLIENT_EASY_H

#include <curl/curl.h>

#include "common/base/buf.h"
#include "common/net/client.h"

/* How often one request may be put on a wire. */
enum { CLIENT_SENDS_MAX = 2 };

struct client_policy {
	bool allow_private;
	char *ca_file;
	char *user_agent;
	struct curl_slist *resolve;
};

struct client_call {
	struct client *client;
	const struct client_policy *policy;
	struct client_call *next, *prev;
	void (*done)(void *arg, const struct client_result *result);
	void *arg;
	CURL *easy;
	struct curl_slist *headers;
	struct curl_slist *resolve;
	struct buf body;
	size_t head_bytes;
	const char *refusal; /* why curl never sees it, or NULL */
	enum client_outcome refusal_outcome;
	int64_t began_ms;
	int64_t timeout_ms;
	int sends;
	int addresses_refused;
	int addresses_tried;
	bool plain;
	bool opened;	/* a socket since the last send */
	bool head_done; /* the empty line after the answer's head came */
	bool stale;	/* a second send was about to use an old connection */
	bool too_large;
	bool unresolved;
	bool ended; /* done has been called, or is being called */
	char error[CURL_ERROR_SIZE];
};

/* An option that curl refuses is our bug, or memory has run out. */
void client_taken(CURLcode code);
#define EASY_SET(easy, option, value) \
	client_taken(curl_easy_setopt((easy), (option), (value)))

/* What curl hands out when memory is left; ends the process otherwise. */
void *client_known(void *memory);

/* The setting "host:port:address, ..." as curl takes it; NULL: none. */
struct curl_slist *client_resolve_list(const char *setting);

/* False: the request is refused, see call->refusal. scratch: during the call.
 */
MUST_CHECK bool client_easy_init(struct client_call *call,
    const struct client_request *request, struct arena *scratch);
void client_easy_done(struct client_call *call);

/* Of a complete head; valid as long as the handle. NULL: none. */
const char *client_easy_location(CURL *easy);
/* Of a complete answer; -1: none. */
int64_t client_easy_retry_after_ms(CURL *easy);

#endif

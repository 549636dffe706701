#include <event2/event.h>

#include "common/base/clock.h"
#include "common/net/client_easy.h"

enum { IDLE_CONNECTIONS_MAX = 256 };

struct client {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer *timer;   /* curl's */
	struct loop_timer *refusal; /* calls that never reach curl */
	struct arena *scratch;	    /* of one client_send */
	struct client_call *calls;
	size_t in_flight;
	struct client_policy policy;
};

#define SET_MULTI(multi, option, value) \
	do { \
		if (curl_multi_setopt((multi), (option), (value)) != CURLM_OK) \
			abort(); \
	} while (0)

/* ---- a call's end ---- */

static void call_link(struct client_call *call, struct client *client)
{
	call->client = client;
	call->next = client->calls;
	if (call->next)
		call->next->prev = call;
	client->calls = call;
	client->in_flight++;
}

static void call_unlink(struct client_call *call)
{
	struct client *client = call->client;

	if (client->calls == call)
		client->calls = call->next;
	else
		call->prev->next = call->next;
	if (call->next)
		call->next->prev = call->prev;
	client->in_flight--;
}

/* An interim answer (1xx) and half a head are none. */
static bool answer_complete(const struct client_call *call)
{
	long status = 0;

	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return call->head_done && status >= 200;
}

/* The call leaves the client first: done may send, or abort another. */
static void call_finish(
    struct client_call *call, enum client_outcome outcome, const char *text)
{
	struct client_result result = {
		.outcome = outcome,
		.sent = call->sends > 0,
		.retry_after_ms = -1,
		.text = text,
		.took_ms = clock_steady_ms() - call->began_ms,
		.unresolved = call->unresolved,
	};
	long status = 0;
	char *type = NULL;

	if (!call->refusal && answer_complete(call)) {
		curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
		result.head_status = (int)status;
		result.location = client_easy_location(call->easy);
	}
	if (outcome == CLIENT_ANSWERED) {
		curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
		result.status = (int)status;
		result.content_type = type;
		result.body = buf_bytes(&call->body);
		result.retry_after_ms = client_easy_retry_after_ms(call->easy);
	}
	if (!call->refusal)
		curl_multi_remove_handle(call->client->multi, call->easy);
	call_unlink(call);
	call->ended = true;
	call->done(call->arg, &result);
	client_easy_done(call);
	free(call);
}

static enum client_outcome outcome_of(
    const struct client_call *call, CURLcode code)
{
	if (call->too_large || code == CURLE_FILESIZE_EXCEEDED)
		return CLIENT_TOO_LARGE;
	if (code == CURLE_OK && answer_complete(call))
		return CLIENT_ANSWERED;
	if (code == CURLE_OPERATION_TIMEDOUT)
		return CLIENT_TIMEOUT;
	if (call->sends > 0)
		return CLIENT_CUT;
	if (call->addresses_refused && !call->addresses_tried)
		return CLIENT_REFUSED_ADDRESS;
	return CLIENT_NO_CONNECTION;
}

/* Died on a reused connection, before a byte of an answer. */
static bool may_send_again(const struct client_call *call, CURLcode code)
{
	long connects = 0;

	if (call->sends != 1 || call->head_bytes || call->too_large)
		return false;
	if (call->stale)
		return true;
	curl_easy_getinfo(call->easy, CURLINFO_NUM_CONNECTS, &connects);
	return connects == 0 &&
	    (code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR ||
		code == CURLE_RECV_ERROR);
}

static bool send_again(struct client_call *call)
{
	CURLM *multi = call->client->multi;
	int64_t left = call->timeout_ms - (clock_steady_ms() - call->began_ms);

	if (left <= 0)
		return false;
	curl_multi_remove_handle(multi, call->easy);
	call->stale = false;
	EASY_SET(call->easy, CURLOPT_FRESH_CONNECT, 1L);
	EASY_SET(call->easy, CURLOPT_TIMEOUT_MS, (long)left);
	if (curl_multi_add_handle(multi, call->easy) != CURLM_OK)
		abort();
	return true;
}

static void call_settle(struct client_call *call, CURLcode code)
{
	enum client_outcome outcome;
	const char *text;

	if (code != CURLE_OK && may_send_again(call, code) && send_again(call))
		return;
	call->unresolved = code == CURLE_COULDNT_RESOLVE_HOST;
	outcome = outcome_of(call, code);
	text = *call->error ? call->error : curl_easy_strerror(code);
	if (outcome == CLIENT_ANSWERED)
		text = "answered";
	if (outcome == CLIENT_TOO_LARGE)
		text = "the answer is too large";
	if (outcome == CLIENT_REFUSED_ADDRESS)
		text = "the address is not public";
	if (outcome == CLIENT_CUT && code == CURLE_OK)
		text = "the answer ended in its head";
	call_finish(call, outcome, text);
}

/* ---- curl and the loop ---- */

static void settle_finished(struct client *client)
{
	struct client_call *call;
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(client->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &call);
		call_settle(call, msg->data.result);
	}
}

static void on_timer(void *arg)
{
	struct client *client = arg;
	int running;

	curl_multi_socket_action(
	    client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	settle_finished(client);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	int action = (what & EV_READ ? CURL_CSELECT_IN : 0) |
	    (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	int running;

	curl_multi_socket_action(client->multi, fd, action, &running);
	settle_finished(client);
}

static int watch_timer(CURLM *multi UNUSED, long ms, void *arg)
{
	struct client *client = arg;

	if (ms < 0)
		loop_timer_disarm(client->timer);
	else
		loop_timer_arm(client->timer, ms);
	return 0;
}

/* watched is the event of that socket, which curl keeps for us. */
static int watch_socket(
    CURL *easy UNUSED, curl_socket_t fd, int what, void *arg, void *watched)
{
	struct client *client = arg;
	struct event *event = watched;
	short wanted = EV_PERSIST;

	if (event)
		event_free(event);
	event = NULL;
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		wanted |= EV_READ;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		wanted |= EV_WRITE;
	if (what != CURL_POLL_REMOVE) {
		event = client_known(event_new(
		    loop_base(client->loop), fd, wanted, on_socket, client));
		event_add(event, NULL);
	}
	curl_multi_assign(client->multi, fd, event);
	return 0;
}

/* One a turn: done may send, and abort, any call. */
static void finish_refused(void *arg)
{
	struct client *client = arg;
	struct client_call *call = client->calls;

	while (call && !call->refusal)
		call = call->next;
	if (!call)
		return;
	loop_timer_arm(client->refusal, 0);
	call_finish(call, call->refusal_outcome, call->refusal);
}

/* ---- the public face ---- */

struct client *client_new(struct loop *loop, const struct client_def *def)
{
	struct client *client = client_known(calloc(1, sizeof(*client)));

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		abort();
	client->loop = loop;
	client->multi = client_known(curl_multi_init());
	client->timer = loop_timer_new(loop, on_timer, client);
	client->refusal = loop_timer_new(loop, finish_refused, client);
	client->scratch = arena_new();
	client->policy.allow_private = def->allow_private_addresses;
	client->policy.resolve = client_resolve_list(def->resolve);
	if (def->ca_file && *def->ca_file)
		client->policy.ca_file = client_known(strdup(def->ca_file));
	if (def->user_agent)
		client->policy.user_agent =
		    client_known(strdup(def->user_agent));
	SET_MULTI(client->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	SET_MULTI(client->multi, CURLMOPT_SOCKETDATA, client);
	SET_MULTI(client->multi, CURLMOPT_TIMERFUNCTION, watch_timer);
	SET_MULTI(client->multi, CURLMOPT_TIMERDATA, client);
	SET_MULTI(
	    client->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX);
	SET_MULTI(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
	    (long)def->connections_per_host_max);
	return client;
}

void client_free(struct client **client)
{
	struct client *c = *client;

	if (!c)
		return;
	while (c->calls)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		client_abort(c->calls);
	curl_multi_cleanup(c->multi);
	loop_timer_free(&c->timer);
	loop_timer_free(&c->refusal);
	curl_slist_free_all(c->policy.resolve);
	arena_free(&c->scratch);
	free(c->policy.ca_file);
	free(c->policy.user_agent);
	free(c);
	*client = NULL;
}

struct client_call *client_send(struct client *client,
    const struct client_request *request,
    void (*done)(void *arg, const struct client_result *result), void *arg)
{
	struct client_call *call = client_known(calloc(1, sizeof(*call)));

	assert(request->timeout_ms > 0);
	call->policy = &client->policy;
	call->done = done;
	call->arg = arg;
	call->began_ms = clock_steady_ms();
	call->timeout_ms = request->timeout_ms;
	buf_init(&call->body, NULL, request->answer_max);
	call_link(call, client);
	arena_reset(client->scratch);
	if (!client_easy_init(call, request, client->scratch))
		loop_timer_arm(client->refusal, 0);
	else if (curl_multi_add_handle(client->multi, call->easy) != CURLM_OK)
		abort();
	return call;
}

void client_abort(struct client_call *call)
{
	/* From within its own done there is nothing left to abort. */
	if (!call->ended)
		call_finish(call, CLIENT_ABORTED, "aborted");
}

size_t client_in_flight(const struct client *client)
{
	return client->in_flight;
}

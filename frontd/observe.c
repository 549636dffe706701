#include "common/base/clock.h"
#include "common/base/metrics.h"
#include "common/federation/relay_figures.h"
#include "frontd/dispatch.h"
#include "frontd/park.h"

/* Lines of refusals in an interval; the rest is summed up in one. */
enum { REFUSAL_LINES_MAX = 20, REFUSAL_WINDOW_MS = 10000 };
enum { ROUTES_MAX = 256 };

/* "GET//api/dm": a method and a route. */
static const char *method_route_names[ROUTES_MAX + 1];
/* Each pattern once, whatever methods it has. */
static const char *route_names[ROUTES_MAX + 1];

static const char *const code_names[] = { "200", "201", "202", "204", "400",
	"401", "403", "404", "405", "408", "409", "410", "413", "415", "429",
	"431", "500", "502", "503", "504", "other", NULL };

static const struct rejection {
	int status;
	const char *reason;
} rejections[] = {
	{ 400, "malformed" },
	{ 404, "unknown_route" },
	{ 405, "method" },
	{ 408, "too_slow" },
	{ 413, "too_large" },
	{ 415, "media_type" },
	{ 429, "rate" },
	{ 431, "head_too_large" },
	{ 503, "busy" },
	{ 0, "other" },
};
static const char *reason_names[COUNT(rejections) + 1];

static const char *const auth_reasons[] = { "password", "token", "not_admin",
	"signature", "unknown_peer", NULL };
/* A scope that is not named is a route. */
static const char *const limit_scopes[] = { "general", "peer", "stranger",
	"route", NULL };

static struct metric requests_total = {
	.name = "http_requests_total",
	.help = "Requests that reached a handler.",
	.type = METRIC_COUNTER,
	.label = "method",
	.second = "route",
	.values = method_route_names,
};
static struct metric request_seconds = {
	.name = "http_request_duration_seconds",
	.help = "From the complete request to its answer.",
	.type = METRIC_HISTOGRAM,
	.label = "route",
	.values = route_names,
};
static struct metric responses_total = {
	.name = "http_responses_total",
	.help = "Answers by status.",
	.type = METRIC_COUNTER,
	.label = "code",
	.values = code_names,
};
static struct metric rejected_total = {
	.name = "http_rejected_total",
	.help = "Requests answered without a handler, by reason.",
	.type = METRIC_COUNTER,
	.label = "reason",
	.values = reason_names,
};
static struct metric auth_failures = {
	.name = "auth_failures_total",
	.help = "Callers that were not who they had to be.",
	.type = METRIC_COUNTER,
	.label = "reason",
	.values = auth_reasons,
};
static struct metric limited_total = {
	.name = "rate_limited_total",
	.help = "Requests beyond a rate: all of an address, a route's, a "
		"peer's, an address's that proves nothing.",
	.type = METRIC_COUNTER,
	.label = "scope",
	.values = limit_scopes,
};
static struct metric in_flight = {
	.name = "http_requests_in_flight",
	.help = "Requests that are being handled.",
	.type = METRIC_GAUGE,
};
static struct metric parked = {
	.name = "http_requests_parked",
	.help = "Requests that wait for a peer's answer.",
	.type = METRIC_GAUGE,
};
static struct metric waiting = {
	.name = "worker_queue_length",
	.help = "Requests that wait for a worker.",
	.type = METRIC_GAUGE,
};

/* "METHOD/pattern"; lives as long as the process. */
static const char *method_route(const struct route *route)
{
	char *name;

	if (asprintf(&name, "%s/%s", route->method, route->pattern) < 0)
		abort();
	return name;
}

static void route_name_add(const char *pattern)
{
	size_t i = 0;

	while (route_names[i] && strcmp(route_names[i], pattern) != 0)
		i++;
	route_names[i] = pattern;
}

/* The names are made once from the tables, before the loop runs. */
void observe_setup(void)
{
	for (size_t i = 0; route_at(i); i++) {
		assert(i < ROUTES_MAX);
		method_route_names[i] = method_route(route_at(i));
		route_name_add(route_at(i)->pattern);
	}
	for (size_t i = 0; i < COUNT(rejections); i++)
		reason_names[i] = rejections[i].reason;
	metrics_register(&requests_total);
	metrics_register(&request_seconds);
	metrics_register(&responses_total);
	metrics_register(&rejected_total);
	metrics_register(&auth_failures);
	metrics_register(&limited_total);
	relay_figures_register();
	metrics_register(&in_flight);
	metrics_register(&parked);
	metrics_register(&waiting);
}

static size_t code_place(int status)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", status);
	return metric_place(&responses_total, text);
}

static size_t rejection_place(int status)
{
	size_t i = 0;

	while (rejections[i].status && rejections[i].status != status)
		i++;
	return i;
}

/* Is there room for one more line about refusals? Else it is summed up. */
static bool may_say(struct dispatch *dispatch)
{
	struct limit_state state = limit_count(dispatch->limit, "log",
	    "refused", REFUSAL_LINES_MAX, REFUSAL_WINDOW_MS);

	if (state.allowed)
		return true;
	if (dispatch->refusals_unsaid++ == 0)
		loop_timer_arm(dispatch->sum_timer, state.reset_s * 1000);
	return false;
}

void observe_sum(void *arg)
{
	struct dispatch *dispatch = arg;

	log_info("http.refused_more",
	    F("reason", v_text("refusals that were not logged singly")),
	    F("count", v_int(dispatch->refusals_unsaid)));
	dispatch->refusals_unsaid = 0;
}

void observe_head_refused(
    struct dispatch *dispatch, int status, const struct http_head *head)
{
	metric_add(&rejected_total, rejection_place(status), 1);
	metric_add(&responses_total, code_place(status), 1);
	if (may_say(dispatch))
		log_info("http.refused",
		    F("route", v_text(head ? head->path : NULL)),
		    F("code", v_int(status)));
}

static enum log_level level_of(const struct call *call)
{
	return call->failed ? err_rules[call->err.code].level : LOG_DEBUG;
}

static void say(const struct call *call, int64_t ms)
{
	const struct request *req = &call->req;
	enum log_level level = level_of(call);
	const char *event = call->failed ? "http.refused" : "http.request";

	if (call->failed && level < LOG_ERROR && !may_say(call->dispatch))
		return;
	log_write(level, event,
	    LOG_FIELDS(F("req", v_int(call->number)),
		F("route", v_text(call->match->route->pattern)),
		F("user", v_id(req->user.id)), F("code", v_int(req->status)),
		F("ms", v_int(ms)),
		F("err", v_text(call->failed ? call->err.text : NULL)),
		F("sqlstate",
		    v_text(*call->sqlstate ? call->sqlstate : NULL))));
}

void observe_limited(const char *scope)
{
	metric_add(&limited_total, metric_place(&limited_total, scope), 1);
}

/* Why nobody was let in; NULL when that is not what failed. */
static const char *auth_reason(const struct call *call)
{
	enum route_who who = call->match->route->who;

	if (call->err.code == ERR_UNAUTHORIZED)
		return who == PASSWORD		  ? "password"
		    : who == PEER || who == INBOX ? "signature"
						  : "token";
	if (call->err.code != ERR_FORBIDDEN)
		return NULL;
	if (who == ADMIN && !call->req.user.is_admin)
		return "not_admin";
	return who == PEER ? "unknown_peer" : NULL;
}

static void count_failure(const struct call *call)
{
	const char *reason = auth_reason(call);

	if (reason)
		metric_add(
		    &auth_failures, metric_place(&auth_failures, reason), 1);
	if (call->err.code == ERR_TOO_MANY && call->match->route->who == PEER)
		observe_limited("peer");
}

void observe_call(const struct call *call)
{
	const struct route *route = call->match->route;
	int64_t us = clock_steady_us() - call->began_us;

	metric_add(&requests_total, route_place(route), 1);
	metric_observe_us(&request_seconds,
	    metric_place(&request_seconds, route->pattern), us);
	metric_add(&responses_total, code_place(call->req.status), 1);
	if (call->failed)
		count_failure(call);
	say(call, us / 1000);
}

void observe_gauges(const struct dispatch *dispatch)
{
	metric_set(&in_flight, 0, (double)dispatch->in_flight);
	metric_set(&parked, 0, (double)parking_count(dispatch->parking));
	metric_set(&waiting, 0, (double)work_waiting(dispatch->pool));
}

#include "common/base/daemon.h"
#include "common/base/metrics.h"
#include "frontd/reply.h"
#include "frontd/server.h"

enum { METRICS_MAX = 4 * 1024 * 1024, FIRST_INHERITED = 3 };

struct servers {
	struct http_server *http;
	struct http_server *metrics; /* NULL: none */
	struct dispatch *dispatch;
	const struct frontd_conf *conf;
	struct http_limits limits;
};

static const char *none_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

/* ---- metrics ---- */

static int64_t metrics_head(
    struct http_exchange *ex, struct http_reply *reply, void *arg UNUSED)
{
	const struct http_head *head = http_head(ex);

	if (strcmp(head->method, "GET") == 0 &&
	    strcmp(head->path, "/metrics") == 0)
		return 0;
	reply_plain(http_arena(ex), reply, 404, "Not found");
	return -1;
}

static void metrics_request(struct http_exchange *ex, void *arg)
{
	struct servers *servers = arg;
	struct http_reply reply = {
		.status = 200,
		.content_type = "text/plain; version=0.0.4; charset=utf-8",
	};
	struct buf text;

	observe_gauges(servers->dispatch);
	buf_init(&text, http_arena(ex), METRICS_MAX);
	metrics_write(&text);
	reply.body = buf_bytes(&text);
	http_reply(ex, &reply);
}

static bool metrics_begin(
    struct servers *servers, struct loop *loop, struct err *err)
{
	const struct http_server_def def = {
		.limits = &http_limits_default,
		.on_head = metrics_head,
		.on_request = metrics_request,
		.arg = servers,
	};

	if (!*servers->conf->common.metrics_listen)
		return true;
	servers->metrics = http_server_new(loop, &def, err);
	return servers->metrics != NULL;
}

/* ---- everyone ---- */

static struct http_limits limits_of(const struct frontd_conf *conf)
{
	return (struct http_limits){
		.head_deadline_ms = conf->head_deadline,
		.idle_deadline_ms = conf->idle_deadline,
		.body_deadline_ms = conf->body_deadline,
		.body_rate_bytes = conf->body_rate,
		.write_deadline_ms = conf->write_deadline,
		.spool_above_bytes = conf->spool_above,
		.connections_max = conf->connections_max,
		.connections_per_address_max =
		    conf->connections_per_address_max,
		.requests_per_connection_max =
		    conf->requests_per_connection_max,
	};
}

static bool http_begin(
    struct servers *servers, struct loop *loop, struct err *err)
{
	const struct frontd_conf *conf = servers->conf;
	const struct http_server_def def = {
		.limits = &servers->limits,
		.spool_dir = none_if_empty(conf->spool_dir),
		.trusted_proxies = conf->trusted_proxies,
		.tls_certificate = none_if_empty(conf->tls_certificate),
		.tls_key = none_if_empty(conf->tls_key),
		.on_head = gate_head,
		.on_request = dispatch_request,
		.on_error = dispatch_error,
		.arg = servers->dispatch,
	};

	servers->http = http_server_new(loop, &def, err);
	return servers->http != NULL;
}

static bool listen_on(struct http_server *server, const char *address,
    const char *event, struct err *err)
{
	if (!http_server_listen(server, address, err))
		return false;
	log_write(LOG_INFO, event,
	    LOG_FIELDS(F("address", v_text(address)),
		F("port", v_int(http_server_port(server)))));
	return true;
}

/* Each address of a comma list. */
static bool listen_list(struct http_server *server, const char *list,
    const char *event, struct err *err)
{
	char address[256];

	while (*list) {
		size_t len;

		list += strspn(list, ", ");
		len = strcspn(list, ", ");
		if (len == 0)
			break;
		if (len >= sizeof(address))
			return err_set(
			    err, ERR_INVALID, "listen: address too long");
		memcpy(address, list, len);
		address[len] = '\0';
		list += len;
		if (!listen_on(server, address, event, err))
			return false;
	}
	return true;
}

static bool listen_inherited(
    struct http_server *server, int count, struct err *err)
{
	char address[16];

	for (int i = 0; i < count; i++) {
		snprintf(
		    address, sizeof(address), "fd:%d", FIRST_INHERITED + i);
		if (!listen_on(server, address, "frontd.listening", err))
			return false;
	}
	return true;
}

bool servers_listen(struct servers *servers, struct err *err)
{
	const struct frontd_conf *conf = servers->conf;
	int inherited = daemon_inherited_sockets();

	if (inherited > 0 ? !listen_inherited(servers->http, inherited, err)
			  : !listen_list(servers->http, conf->listen,
				"frontd.listening", err))
		return false;
	return !servers->metrics ||
	    listen_list(servers->metrics, conf->common.metrics_listen,
		"frontd.metrics", err);
}

/* ---- life ---- */

struct servers *servers_new(struct loop *loop, struct dispatch *dispatch,
    const struct frontd_conf *conf, struct err *err)
{
	struct servers *servers = calloc(1, sizeof(*servers));

	if (!servers)
		abort();
	servers->dispatch = dispatch;
	servers->conf = conf;
	servers->limits = limits_of(conf);
	if (!http_begin(servers, loop, err) ||
	    !metrics_begin(servers, loop, err))
		servers_free(&servers);
	return servers;
}

void servers_drain(struct servers *servers)
{
	http_server_drain(servers->http);
}

size_t servers_busy(const struct servers *servers)
{
	return http_server_busy(servers->http);
}

void servers_free(struct servers **servers)
{
	if (!*servers)
		return;
	http_server_free(&(*servers)->http);
	http_server_free(&(*servers)->metrics);
	free(*servers);
	*servers = NULL;
}

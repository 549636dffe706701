#include "common/net/metrics_page.h"

#include "common/base/log.h"
#include "common/base/metrics.h"

enum { PAGE_MAX = 4 << 20 };

static int64_t on_head(
    struct http_exchange *ex, struct http_reply *reply, void *arg UNUSED)
{
	const struct http_head *head = http_head(ex);
	struct buf *page = ARENA_NEW(http_arena(ex), struct buf);

	reply->status = 404;
	if (strcmp(head->path, "/metrics") != 0)
		return -1;
	buf_init(page, http_arena(ex), PAGE_MAX);
	metrics_write(page);
	reply->status = 200;
	reply->content_type = "text/plain; version=0.0.4";
	reply->body = buf_bytes(page);
	return -1;
}

/* on_head answers everything. */
static void on_request(struct http_exchange *ex, void *arg UNUSED)
{
	http_reply(ex, &(struct http_reply){ .status = 404 });
}

static void on_error(struct arena *arena UNUSED, int status UNUSED,
    struct http_reply *reply UNUSED, void *arg UNUSED)
{
}

struct http_server *metrics_page_serve(
    struct loop *loop, const char *address, struct err *err)
{
	static const struct http_server_def def = {
		.limits = &http_limits_default,
		.on_head = on_head,
		.on_request = on_request,
		.on_error = on_error,
	};
	struct http_server *server = http_server_new(loop, &def, err);

	if (server && !http_server_listen(server, address, err))
		http_server_free(&server);
	if (server)
		log_info("metrics.listening",
		    F("port", v_int(http_server_port(server))));
	return server;
}

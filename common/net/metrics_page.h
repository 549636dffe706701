/*
 * metrics_page -- GET /metrics for daemons that listen to nothing else.
 *
 * Loop thread.
 */
#ifndef POSTRIDER_METRICS_PAGE_H
#define POSTRIDER_METRICS_PAGE_H

#include "common/net/http.h"

/* NULL with err: the address cannot be listened on. */
struct http_server *metrics_page_serve(
    struct loop *loop, const char *address, struct err *err);

#endif

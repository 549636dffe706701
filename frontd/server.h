/*
 * server -- the doors: HTTP for everyone, metrics for whoever watches.
 *
 * Listens on the sockets the supervisor hands over, or on the addresses of
 * the setting. Loop thread only.
 */
#ifndef POSTRIDER_SERVER_H
#define POSTRIDER_SERVER_H

#include "frontd/dispatch.h"

struct servers;

struct servers *servers_new(struct loop *loop, struct dispatch *dispatch,
    const struct frontd_conf *conf, struct err *err);
MUST_CHECK bool servers_listen(struct servers *servers, struct err *err);
void servers_drain(struct servers *servers);
size_t servers_busy(const struct servers *servers);
void servers_free(struct servers **servers);

#endif

/*
 * listen -- one direct LISTEN connection, watched by the loop.
 *
 * It holds no transaction and does nothing slow. A notification is a hint:
 * the consumer always looks for itself. on_up(arg) is called after every
 * (re)connect, before any payload, so that the consumer catches up; hint is
 * called once per payload. The connection reconnects with back-off for ever.
 *
 * The connection can hold session advisory locks (worker ids): lock_key, if
 * not 0, is taken with pg_advisory_lock on every connect before on_up, and
 * on_down tells that the connection, and with it the lock, is gone. TCP
 * keepalives and client_connection_check_interval are set.
 *
 * Loop thread only.
 */
#ifndef POSTRIDER_LISTEN_H
#define POSTRIDER_LISTEN_H

#include "common/base/loop.h"

struct listener;

struct listener_def {
	const char *conninfo;
	const char *application;
	const char *const *channels; /* NULL-ended */
	int64_t lock_key;
	void (*on_up)(void *arg);
	void (*on_down)(void *arg);
	void (*hint)(void *arg, const char *channel, const char *payload);
	void *arg;
};

struct listener *listener_new(
    struct loop *loop, const struct listener_def *def);
void listener_free(struct listener **listener);
bool listener_is_up(const struct listener *listener);

#endif

/*
 * frontd -- settings of the daemon that strangers talk to. See main.c.
 */
#ifndef POSTRIDER_FRONTD_H
#define POSTRIDER_FRONTD_H

#include "common/base/conf.h"

struct frontd_conf {
	struct conf_common common;
	const char *listen;
	const char *trusted_proxies;
	const char *spool_dir;
	const char *tls_certificate;
	const char *tls_key;
	int64_t head_deadline;
	int64_t idle_deadline;
	int64_t body_deadline;
	int64_t body_rate;
	int64_t write_deadline;
	int64_t spool_above;
	int64_t connections_max;
	int64_t connections_per_address_max;
	int64_t requests_per_connection_max;
	bool rate_limits;     /* off only for load tests on loopback */
	int64_t rate_general; /* requests a minute and address */
	int64_t password_slots;
	int64_t password_ops;
	int64_t password_memory;
	int64_t token_lifetime;
	int64_t handshake_deadline; /* of the callback, 4 s */
};

extern struct frontd_conf frontd_conf;

#endif

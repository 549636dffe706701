/*
 * daemon -- the life of a daemon, written once.
 *
 * daemon_main owns, in this order: arguments (--config FILE, --help-config,
 * --check-config, --version, --help), config, log, refusal of root (unless
 * POSTRIDER_ALLOW_ROOT is set, for containers and tests), loop, start, READY,
 * wake, the loop; SIGHUP reloads; on SIGTERM or SIGINT no new work, stop when
 * drained or after the grace time; a second signal ends at once. It speaks
 * systemd's datagrams (READY, RELOADING, STOPPING, STATUS, WATCHDOG) by hand;
 * the watchdog is fed only while alive() says so. It neither forks nor writes
 * pid files.
 *
 * base knows no database: start checks the schema (pg/schema.h) itself.
 */
#ifndef POSTRIDER_DAEMON_H
#define POSTRIDER_DAEMON_H

#include "common/base/conf.h"
#include "common/base/loop.h"
#include "common/base/metrics.h"

struct daemon {
	struct loop *loop;
	const struct conf_common *conf;
	void *state;	  /* the daemon's own, set by start */
	bool ready_later; /* set by start, which then calls daemon_ready */
};

struct daemon_def {
	const char *name;
	const struct conf_key *keys;
	void *conf; /* starts with struct conf_common */
	/* Each on the loop thread. */
	bool (*start)(struct daemon *daemon, struct err *err) MUST_CHECK;
	void (*wake)(struct daemon *daemon);  /* hints all end here */
	void (*drain)(struct daemon *daemon); /* take no new work */
	bool (*drained)(struct daemon *daemon);
	bool (*alive)(struct daemon *daemon); /* proof of work for watchdog */
	void (*stop)(struct daemon *daemon);  /* give everything back */
};

int daemon_main(const struct daemon_def *def, int argc, char **argv);

/* One line to the supervisor's STATUS=, if it listens. */
void daemon_status(const char *format, ...) PRINTF(1, 2);

/* Ends the process, with the status of a wrong configuration and one line: what
 * start finds out later, such as a database that does not fit. */
void daemon_refuse(const struct err *err) __attribute__((noreturn));

/* READY=1, once; start may delay it (a database that is not there yet). */
void daemon_ready(void);

/* Listening sockets handed over by the supervisor, first is fd 3; 0: none. */
int daemon_inherited_sockets(void);

/* Random name of this run, 16 hex digits, for application_name and the log. */
const char *daemon_run_id(void);

#endif

/*
 * test_node -- real daemons on a fresh database, for the life of a test.
 *
 * A node is a database, a directory with node key and logs, and a listening
 * socket whose port is in its origin. Daemons are the programs of the build
 * tree ($POSTRIDER_BUILD_DIR, else the working directory), started as
 * children with the settings of the test in their environment, awaited by
 * their READY=1, and ended by their process id.
 *
 * The cluster is test_db.h's; a test begins with test_db_needed(). Daemons
 * use the role made for them. test_node_free ends what still runs and drops
 * the database. A daemon dies with the test's process in any case.
 *
 * A test fails when a daemon of its does not end with status 0, or when its
 * log holds the report of a sanitizer: of a leak, too.
 */
#ifndef POSTRIDER_TEST_NODE_H
#define POSTRIDER_TEST_NODE_H

#include <sys/types.h>

#include "common/base/arena.h"

#define TEST_PASSWORD "correct-horse"

enum { TEST_DAEMONS_MAX = 8, TEST_READY_MS = 20000 };

struct test_daemon {
	const char *program; /* "postrider-frontd" */
	const char *log;     /* path of its stderr */
	int port;	     /* frontd: where this one listens */
	pid_t pid;	     /* 0: not running */
	int socket;	     /* inherited by frontd, kept over restarts */
	int notify;	     /* receiving end of NOTIFY_SOCKET */
	const char *notify_path;
	const char *const *settings;
	struct test_node *node;
};

struct test_node {
	struct arena *arena;
	const char *dir;
	const char *host;   /* "nova.localhost" */
	const char *origin; /* "http://nova.localhost:<port>" */
	int port;
	char *database; /* conninfo of the superuser, for test_db.h */
	struct test_daemon daemons[TEST_DAEMONS_MAX];
	size_t daemon_count;
	int socket; /* of the origin's port; -1: given to a frontd */
};

/* A fresh migrated database and an origin on a loopback port; no daemon. */
struct test_node *test_node_new(const char *host);
void test_node_free(struct test_node **node);

/*
 * settings: NULL-ended "key=value" list over the defaults of the tests, or
 * NULL. The first frontd of a node listens on the origin's port, further ones
 * on ports of their own. Both wait for READY; the _start_only ones don't.
 */
struct test_daemon *test_frontd(
    struct test_node *node, const char *const *settings);
struct test_daemon *test_outboxd(
    struct test_node *node, const char *const *settings);
struct test_daemon *test_janitord(
    struct test_node *node, const char *const *settings);
struct test_daemon *test_frontd_start_only(
    struct test_node *node, const char *const *settings);

/* Supervisor datagrams: true once text ("READY=1") came within ms. */
bool test_daemon_says(struct test_daemon *daemon, const char *text, int ms);
/* Does its log hold text by now, or within ms? */
bool test_daemon_logged(
    const struct test_daemon *daemon, const char *text, int ms);
/* Resident memory in kB. */
int64_t test_daemon_rss_kb(const struct test_daemon *daemon);

/* SIGTERM and wait; the exit status, or -signal. */
int test_daemon_stop(struct test_daemon *daemon);
/* SIGKILL and wait. */
void test_daemon_kill(struct test_daemon *daemon);
/* Waits for its own end: the exit status, -signal, or -1000 after ms. */
int test_daemon_ended(struct test_daemon *daemon, int ms);
/* The same program, settings and port again. */
void test_daemon_again(struct test_daemon *daemon);

/* Polls done(arg) every few ms; false when ms passed without it. */
bool test_until(bool (*done)(void *arg), void *arg, int ms);

/* A registered person on this node: token and id. */
struct test_person {
	const char *username;
	const char *id;
	const char *token;
};
struct test_person test_person(
    struct test_node *node, int port, const char *username);

#endif

/*
 * site -- the nodes with everything that belongs to them.
 *
 * Each has a database on the cluster, a frontd, three outboxd and a janitord,
 * and an origin at which a proxy stands. Daemons that end are started again,
 * as a supervisor would; one that ends although nobody killed it is counted.
 * Main thread only.
 */
#ifndef POSTRIDER_CHAOS_SITE_H
#define POSTRIDER_CHAOS_SITE_H

#include "tests/chaos/cluster.h"
#include "tests/chaos/proxy.h"

struct chaos_daemon {
	const char *program; /* "postrider-outboxd" */
	const char *log;
	int place;
	pid_t pid; /* 0: not running */
	bool killed;
	bool stopped;
	int64_t continue_at; /* steady ms */
	int64_t start_at;
};

struct chaos_person {
	const char *username;
	const char *id;
	const char *token;
};

struct side {
	const char *name; /* "nova" */
	const char *host; /* "nova.localhost" */
	const char *dir;
	const char *address; /* where clients find it */
	char *database;	     /* conninfo of the superuser */
	struct proxy *proxy;
	int socket;
	struct chaos_daemon daemons[DAEMONS];
	int daemon_count;
	struct chaos_person people[PEOPLE];
	/* channels[p][q]: of our person p with their person q */
	const char *channels[PEOPLE][PEOPLE];
};

struct site {
	struct arena *arena;
	const char *dir;
	const char *build;
	struct cluster cluster;
	struct side sides[SIDES_MAX];
	int count;
	int unexpected; /* ends of daemons that nobody caused */
	int starts;
};

/* With count nodes, and no people yet. */
MUST_CHECK bool site_begin(struct site *site, int count,
    const struct options *options, struct err *err);
/* Ends every process and removes everything; the logs stay if kept. */
void site_end(struct site *site, bool kept);

/* Starts again what has ended, wakes what was stopped for long enough. */
void site_supervise(struct site *site);
void daemon_kill(struct chaos_daemon *daemon, int start_after_ms);
void daemon_stop(struct chaos_daemon *daemon, int for_ms);
/* What sanitizers said in the daemons' logs; each is a line on stderr. */
int site_reports(const struct site *site);
/* Everything runs again. */
void site_mend(struct site *site);

/* Statements on a side's database; false while it is away. */
bool side_script(const struct side *side, const char *script);
/* One bigint called n; -1 while the database is away. */
int64_t side_number(const struct side *side, const char *query);

#endif

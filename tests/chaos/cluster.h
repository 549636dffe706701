/*
 * cluster -- a PostgreSQL of our own, to be stopped and crashed.
 *
 * It lies in a fresh directory, speaks over a socket there, runs as the user
 * postgres where we are root, and dies with us. Main thread only.
 */
#ifndef POSTRIDER_CHAOS_CLUSTER_H
#define POSTRIDER_CHAOS_CLUSTER_H

#include <sys/types.h>

#include "common/base/arena.h"
#include "common/base/err.h"

struct cluster {
	struct arena *arena;
	const char *bin;
	const char *dir;
	const char *conninfo; /* of the superuser */
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

/* dir is an empty directory of ours. */
MUST_CHECK bool cluster_begin(struct cluster *cluster, struct arena *arena,
    const char *dir, struct err *err);
MUST_CHECK bool cluster_start(struct cluster *cluster, struct err *err);
/* SIGINT: fast, SIGQUIT: at once, with recovery at the next start. */
void cluster_stop(struct cluster *cluster, int how);
void cluster_end(struct cluster *cluster);

#endif

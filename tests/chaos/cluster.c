#include "tests/chaos/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pg/sql.h"
#include "tests/chaos/chaos.h"
#include "tests/lib/test_db.h"

enum { START_MS = 60000, TURN_MS = 20 };

/* It is PostgreSQL that crashes, never the machine: what it has written stays.
 * With fsync a recovery is half a minute of waiting on a busy disk. */
static const char settings[] = "listen_addresses = ''\n"
			       "fsync = off\n"
			       "max_connections = 340\n"
			       "superuser_reserved_connections = 20\n"
			       "shared_buffers = 64MB\n"
			       "max_wal_size = 2GB\n"
			       "wal_compression = on\n";

/* POSTRIDER_PG_BIN, else the newest of Debian's. */
static const char *bin_find(struct arena *arena)
{
	const char *given = getenv("POSTRIDER_PG_BIN");
	const char *found = NULL;
	glob_t all;

	if (given && *given)
		return given;
	if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &all) == 0)
		found = arena_text(arena, all.gl_pathv[all.gl_pathc - 1]);
	globfree(&all);
	return found;
}

/* Who runs it: we ourselves, but never root. */
static bool user_find(struct cluster *cluster, struct err *err)
{
	const struct passwd *user;

	cluster->uid = getuid();
	cluster->gid = getgid();
	if (cluster->uid != 0)
		return true;
	user = getpwnam("postgres");
	if (!user)
		return err_set(err, ERR_ABSENT, "there is no user postgres");
	cluster->uid = user->pw_uid;
	cluster->gid = user->pw_gid;
	return true;
}

static void become_user(const struct cluster *cluster)
{
	if (getuid() == 0 &&
	    (setgroups(0, NULL) || setgid(cluster->gid) ||
		setuid(cluster->uid)))
		_exit(126);
	if (setpgid(0, 0) || chdir(cluster->dir))
		_exit(126);
}

/* Its own words go to the file log. */
static pid_t run(
    const struct cluster *cluster, int end_signal, const char *const *argv)
{
	const char *log = arena_printf(cluster->arena, "%s/log", cluster->dir);
	pid_t parent = getpid();
	pid_t pid = fork();
	int out;

	if (pid != 0)
		return pid;
	become_user(cluster);
	out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	prctl(PR_SET_PDEATHSIG, end_signal);
	if (getppid() == parent)
		execv(argv[0], (char *const *)argv);
	_exit(127);
}

static bool database_make(struct cluster *cluster, struct err *err)
{
	const char *initdb =
	    arena_printf(cluster->arena, "%s/initdb", cluster->bin);
	const char *data =
	    arena_printf(cluster->arena, "%s/data", cluster->dir);
	const char *const argv[] = { initdb, "-D", data, "-A", "trust", "-U",
		"postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
		NULL };
	pid_t pid = run(cluster, SIGKILL, argv);
	int status = 1;
	FILE *file;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return err_set(err, ERR_BUG, "initdb failed");
	file = fopen(
	    arena_printf(cluster->arena, "%s/postgresql.conf", data), "ae");
	if (!file)
		return err_set(err, ERR_BUG, "%s: %s", data, strerror(errno));
	fprintf(
	    file, "%sunix_socket_directories = '%s'\n", settings, cluster->dir);
	fclose(file);
	return true;
}

bool cluster_begin(struct cluster *cluster, struct arena *arena,
    const char *dir, struct err *err)
{
	*cluster = (struct cluster){ .arena = arena, .dir = dir };
	cluster->bin = bin_find(arena);
	cluster->conninfo =
	    arena_printf(arena, "host=%s user=postgres dbname=postgres", dir);
	if (!cluster->bin)
		return err_set(err, ERR_ABSENT,
		    "PostgreSQL is not found, set POSTRIDER_PG_BIN");
	if (!user_find(cluster, err))
		return false;
	if (chmod(dir, 0755) || chown(dir, cluster->uid, cluster->gid))
		return err_set(err, ERR_BUG, "%s: %s", dir, strerror(errno));
	return database_make(cluster, err) && cluster_start(cluster, err);
}

static bool answers(const struct cluster *cluster)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(cluster->conninfo);
	struct err err = { 0 };

	return conn_script(conn, "SELECT 1", &err);
}

bool cluster_start(struct cluster *cluster, struct err *err)
{
	const char *postgres =
	    arena_printf(cluster->arena, "%s/postgres", cluster->bin);
	const char *data =
	    arena_printf(cluster->arena, "%s/data", cluster->dir);
	const char *const argv[] = { postgres, "-D", data, NULL };
	int64_t until = clock_steady_ms() + START_MS;

	cluster->pid = run(cluster, SIGQUIT, argv);
	while (!answers(cluster)) {
		if (clock_steady_ms() > until ||
		    waitpid(cluster->pid, NULL, WNOHANG) != 0)
			return err_set(err, ERR_BUG,
			    "PostgreSQL does not start, see %s/log",
			    cluster->dir);
		pause_ms(TURN_MS);
	}
	return true;
}

void cluster_stop(struct cluster *cluster, int how)
{
	if (cluster->pid <= 0)
		return;
	kill(cluster->pid, how);
	waitpid(cluster->pid, NULL, 0);
	cluster->pid = 0;
}

void cluster_end(struct cluster *cluster)
{
	cluster_stop(cluster, SIGQUIT);
}

#include "tests/chaos/site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/crypto/secret.h"
#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

enum { AGAIN_MS = 100 };

static const char *const programs[DAEMONS] = {
	"postrider-frontd",
	"postrider-outboxd",
	"postrider-outboxd",
	"postrider-outboxd",
	"postrider-janitord",
};

static const char *const settings[][2] = {
	{ "POSTRIDER_ALLOW_ROOT", "1" },
	{ "POSTRIDER_PASSWORD_MEMORY", "1MB" },
	{ "POSTRIDER_PASSWORD_OPS", "1" },
	{ "POSTRIDER_RATE_LIMITS", "off" },
	{ "POSTRIDER_ALLOW_PRIVATE_ADDRESSES", "on" },
	{ "POSTRIDER_LOG_LEVEL", "warn" },
	{ "POSTRIDER_ANSWER_TIMEOUT", "5s" },
};

/*
 * Every entry that ever was in the outbox, in the order of its transaction's
 * hold on the conversation: what presentations are compared with.
 */
static const char watch_script[] =
    "UPDATE instance_settings SET relay_requests_per_minute = 1000000;"
    "CREATE SCHEMA chaos;"
    "CREATE TABLE chaos.entries (id bigint PRIMARY KEY, context_id text,"
    " event_type text, entity_id text, content text);"
    "CREATE FUNCTION chaos.keep() RETURNS trigger LANGUAGE plpgsql"
    " SECURITY DEFINER AS $$ BEGIN"
    " INSERT INTO chaos.entries VALUES (NEW.id, NEW.context_id,"
    " NEW.event_type, NEW.entity_id,"
    " ('{' || NEW.payload || '}')::jsonb #>> '{message,content}')"
    " ON CONFLICT DO NOTHING; RETURN NEW; END $$;"
    "CREATE TRIGGER keep AFTER INSERT ON federation_outbox FOR EACH ROW"
    " EXECUTE FUNCTION chaos.keep();";

/* ---- processes ---- */

static void socket_hand_over(int fd)
{
	char pid[24];

	if (fd == 3)
		fcntl(fd, F_SETFD, 0);
	else
		dup2(fd, 3);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
}

static const char *role_of(struct arena *arena, const char *program)
{
	char *role = arena_text(arena, program);

	*strchr(role, '-') = '_';
	return role;
}

static void become(const struct site *site, const struct side *side,
    const struct chaos_daemon *daemon)
{
	struct arena *arena = arena_new();
	const char *path =
	    arena_printf(arena, "%s/%s", site->build, daemon->program);
	int log =
	    open(daemon->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(log, STDERR_FILENO);
	for (size_t i = 0; i < COUNT(settings); i++)
		setenv(settings[i][0], settings[i][1], 1);
	setenv("POSTRIDER_DATABASE",
	    test_db_as(arena, side->database, role_of(arena, daemon->program)),
	    1);
	setenv("POSTRIDER_INSTANCE",
	    arena_printf(arena, "%s%d", side->name, daemon->place), 1);
	if (daemon->place == 0)
		socket_hand_over(side->socket);
	execl(path, daemon->program, "--config",
	    arena_printf(arena, "%s/conf", side->dir), (char *)NULL);
	dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
	_exit(127);
}

static void launch(
    struct site *site, struct side *side, struct chaos_daemon *daemon)
{
	daemon->killed = false;
	daemon->stopped = false;
	site->starts++;
	daemon->pid = fork();
	if (daemon->pid < 0)
		abort();
	if (daemon->pid == 0)
		become(site, side, daemon);
}

static void ended(struct site *site, struct chaos_daemon *daemon, int status)
{
	daemon->pid = 0;
	if (daemon->killed)
		return;
	site->unexpected++;
	daemon->start_at = clock_steady_ms() + AGAIN_MS;
	fprintf(stderr, "chaos: %s ended by itself (%s %d), see %s\n",
	    daemon->program, WIFSIGNALED(status) ? "signal" : "status",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
	    daemon->log);
}

static void supervise(
    struct site *site, struct side *side, struct chaos_daemon *daemon)
{
	int64_t now = clock_steady_ms();
	int status;

	if (daemon->pid > 0 &&
	    waitpid(daemon->pid, &status, WNOHANG) == daemon->pid)
		ended(site, daemon, status);
	if (daemon->pid > 0 && daemon->stopped && now >= daemon->continue_at) {
		daemon->stopped = false;
		kill(daemon->pid, SIGCONT);
	}
	if (daemon->pid == 0 && now >= daemon->start_at)
		launch(site, side, daemon);
}

void site_supervise(struct site *site)
{
	for (int s = 0; s < site->count; s++)
		for (int i = 0; i < site->sides[s].daemon_count; i++)
			supervise(
			    site, &site->sides[s], &site->sides[s].daemons[i]);
}

static int reports_in(const char *log)
{
	FILE *file = fopen(log, "re");
	char *line = NULL;
	size_t room = 0;
	int count = 0;

	while (file && getline(&line, &room, file) >= 0) {
		if (!strstr(line, "runtime error:") &&
		    !strstr(line, "ERROR: AddressSanitizer"))
			continue;
		count++;
		fprintf(stderr, "chaos: %s: %s", log, line);
	}
	free(line);
	if (file)
		fclose(file);
	return count;
}

int site_reports(const struct site *site)
{
	int count = 0;

	for (int s = 0; s < site->count; s++)
		for (int i = 0; i < site->sides[s].daemon_count; i++)
			count += reports_in(site->sides[s].daemons[i].log);
	return count;
}

void daemon_kill(struct chaos_daemon *daemon, int start_after_ms)
{
	if (daemon->pid <= 0)
		return;
	daemon->killed = true;
	daemon->start_at = clock_steady_ms() + start_after_ms;
	kill(daemon->pid, SIGKILL);
}

void daemon_stop(struct chaos_daemon *daemon, int for_ms)
{
	if (daemon->pid <= 0 || daemon->killed)
		return;
	daemon->stopped = true;
	daemon->continue_at = clock_steady_ms() + for_ms;
	kill(daemon->pid, SIGSTOP);
}

void site_mend(struct site *site)
{
	for (int s = 0; s < site->count; s++) {
		proxy_set_faults(site->sides[s].proxy, 0);
		for (int i = 0; i < site->sides[s].daemon_count; i++) {
			site->sides[s].daemons[i].continue_at = 0;
			site->sides[s].daemons[i].start_at = 0;
		}
	}
	site_supervise(site);
}

/* ---- the database ---- */

bool side_script(const struct side *side, const char *script)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(side->database);
	struct err err = { 0 };

	return conn_script(conn, script, &err);
}

int64_t side_number(const struct side *side, const char *query)
{
	struct number {
		int64_t n;
	} number = { -1 };
	static const struct shape shape[] = {
		SHAPE(INT, struct number, n, NULL),
		SHAPE_END(struct number),
	};
	const struct stmt stmt = { "number", query, SQL_ONE, 0 };
	AUTO(arena_free) struct arena *arena = arena_new();
	AUTO(conn_free) struct conn *conn = test_db_conn(side->database);
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	return sql_one(tx, &stmt, shape, &number, &err) && tx_commit(tx, &err)
	    ? number.n
	    : -1;
}

/* ---- beginning ---- */

static int socket_listening(int *port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) ||
	    listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		abort();
	*port = ntohs(addr.sin_port);
	return fd;
}

static bool files_write(
    struct site *site, const struct side *side, struct err *err)
{
	const char *key = arena_printf(site->arena, "%s/key", side->dir);
	FILE *file =
	    fopen(arena_printf(site->arena, "%s/conf", side->dir), "we");

	if (!file)
		return err_set(err, ERR_BUG, "%s: cannot write", side->dir);
	fprintf(file, "origin = %s\nnode_key_file = %s\nspool_dir = %s\n",
	    proxy_origin(side->proxy), key, side->dir);
	fclose(file);
	return node_key_create(key, err);
}

static bool program_exists(const struct site *site, const char *program)
{
	return access(arena_printf(site->arena, "%s/%s", site->build, program),
		   X_OK) == 0;
}

static void daemons_begin(struct site *site, struct side *side)
{
	for (int i = 0; i < DAEMONS; i++) {
		struct chaos_daemon *daemon =
		    &side->daemons[side->daemon_count];

		if (i == DAEMONS - 1 && !program_exists(site, programs[i]))
			return;
		*daemon = (struct chaos_daemon){
			.program = programs[i],
			.place = i,
			.log = arena_printf(
			    site->arena, "%s/log.%d", side->dir, i),
		};
		launch(site, side, daemon);
		side->daemon_count++;
	}
}

static bool side_begin(
    struct site *site, int place, uint64_t seed, struct err *err)
{
	static const char *const names[SIDES_MAX] = { "nova", "orbit", "luna" };
	struct side *side = &site->sides[place];
	struct arena *arena = site->arena;
	int port;

	side->name = names[place];
	side->host = arena_printf(arena, "%s.localhost", side->name);
	side->dir = arena_printf(arena, "%s/%s", site->dir, side->name);
	if (mkdir(side->dir, 0755))
		return err_set(err, ERR_BUG, "%s: cannot make", side->dir);
	side->socket = socket_listening(&port);
	side->address = arena_printf(arena, "%s:%d", side->host, port);
	side->proxy = proxy_new(side->host, port, seed + (uint64_t)place);
	side->database = test_db_create();
	if (!side_script(side, watch_script))
		return err_set(err, ERR_BUG, "the outbox cannot be watched");
	if (!files_write(site, side, err))
		return false;
	daemons_begin(site, side);
	return true;
}

bool site_begin(struct site *site, int count, const struct options *options,
    struct err *err)
{
	const char *build = getenv("POSTRIDER_BUILD_DIR");
	char dir[] = "/tmp/postrider-chaos-XXXXXX";

	*site = (struct site){ .arena = arena_new() };
	site->build = build && *build ? build : ".";
	if (!program_exists(site, programs[0]))
		return err_set(err, ERR_ABSENT,
		    "no %s in %s, set POSTRIDER_BUILD_DIR", programs[0],
		    site->build);
	if (!mkdtemp(dir))
		return err_set(err, ERR_BUG, "%s: cannot make", dir);
	site->dir = arena_text(site->arena, dir);
	if (chmod(dir, 0755) ||
	    mkdir(arena_printf(site->arena, "%s/pg", dir), 0755))
		return err_set(err, ERR_BUG, "%s: cannot make", dir);
	if (!cluster_begin(&site->cluster, site->arena,
		arena_printf(site->arena, "%s/pg", dir), err))
		return false;
	setenv("POSTRIDER_TEST_DB", site->cluster.conninfo, 1);
	for (int s = 0; s < count; s++) {
		if (chaos_interrupted())
			return err_set(err, ERR_BUSY, "interrupted");
		site->count = s + 1;
		if (!side_begin(site, s, options->seed, err))
			return false;
	}
	return true;
}

/* ---- ending ---- */

static void side_end(struct side *side)
{
	for (int i = 0; i < side->daemon_count; i++) {
		struct chaos_daemon *daemon = &side->daemons[i];

		if (daemon->pid <= 0)
			continue;
		kill(daemon->pid, SIGKILL);
		waitpid(daemon->pid, NULL, 0);
		daemon->pid = 0;
	}
	proxy_free(&side->proxy);
	if (side->socket > 0)
		close(side->socket);
	free(side->database);
}

static int entry_remove(
    const char *path, const struct stat *stat, int type, struct FTW *where)
{
	(void)stat;
	(void)type;
	(void)where;
	return remove(path);
}

void site_end(struct site *site, bool kept)
{
	for (int s = 0; s < site->count; s++)
		side_end(&site->sides[s]);
	cluster_end(&site->cluster);
	if (site->dir && kept)
		fprintf(stderr, "chaos: kept %s\n", site->dir);
	else if (site->dir)
		nftw(site->dir, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
	arena_free(&site->arena);
}

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/crypto/secret.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"
#include "tests/lib/test_run.h"

enum {
	POLL_MS = 5,
	KILL_AFTER_MS = 30000,
	PATIENCE_MS = 6000, /* longer than stop_grace */
	REPORT_LINES_MAX = 60
};

/* What every daemon of a test runs with, unless the test says otherwise. */
static const char *const defaults[] = {
	"password_memory=1MB",
	"password_ops=1",
	"rate_limits=off",
	"allow_private_addresses=on",
	"log_level=debug",
	"stop_grace=5s",
	NULL,
};

bool test_until(bool (*done)(void *arg), void *arg, int ms)
{
	int64_t until_ms = clock_steady_ms() + test_patience_ms(ms);

	while (!done(arg)) {
		if (clock_steady_ms() > until_ms)
			return false;
		poll(NULL, 0, POLL_MS);
	}
	return true;
}

/* ---- sockets ---- */

static int port_of(int fd)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(name);

	cr_assert(getsockname(fd, (struct sockaddr *)&name, &len) == 0);
	return ntohs(name.sin_port);
}

static int socket_listening(void)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0 &&
		bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0 &&
		listen(fd, SOMAXCONN) == 0,
	    "socket: %s", strerror(errno));
	return fd;
}

/* Where the daemon's supervisor would hear it. */
static int notify_socket(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0 && strlen(path) < sizeof(name.sun_path));
	memcpy(name.sun_path, path, strlen(path) + 1);
	unlink(path);
	cr_assert(bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0,
	    "%s: %s", path, strerror(errno));
	return fd;
}

/* ---- a node ---- */

static void conf_write(const struct test_node *node)
{
	const char *path = arena_printf(node->arena, "%s/conf", node->dir);
	FILE *file = fopen(path, "we");

	cr_assert_not_null(file, "%s: %s", path, strerror(errno));
	fprintf(file, "# made by a test\norigin = %s\nnode_key_file = %s/key\n",
	    node->origin, node->dir);
	fclose(file);
}

struct test_node *test_node_new(const char *host)
{
	struct test_node *node = calloc(1, sizeof(*node));
	const char *run_dir = getenv(TEST_RUN_DIR);
	char *dir;
	struct err err = { 0 };

	cr_assert(node);
	node->arena = arena_new();
	dir = arena_printf(
	    node->arena, "%s/node-XXXXXX", run_dir ? run_dir : "/tmp");
	cr_assert(mkdtemp(dir));
	node->dir = dir;
	node->socket = socket_listening();
	node->port = port_of(node->socket);
	node->host = arena_text(node->arena, host);
	node->origin =
	    arena_printf(node->arena, "http://%s:%d", host, node->port);
	node->database = test_db_create();
	cr_assert(
	    node_key_create(arena_printf(node->arena, "%s/key", dir), &err),
	    "%s", err.text);
	conf_write(node);
	return node;
}

/* ---- starting ---- */

static void setting_export(const char *setting)
{
	char name[128] = "POSTRIDER_";
	size_t at = strlen(name);

	for (; *setting && *setting != '='; setting++)
		if (at + 1 < sizeof(name))
			name[at++] = (*setting >= 'a' && *setting <= 'z')
			    ? (char)(*setting - 'a' + 'A')
			    : *setting;
	name[at] = '\0';
	setenv(name, *setting ? setting + 1 : "", 1);
}

static void settings_export(const char *const *settings)
{
	for (; settings && *settings; settings++)
		setting_export(*settings);
}

/* "postrider-frontd" uses the role "postrider_frontd". */
static const char *role_of(const struct test_daemon *daemon)
{
	char *role = arena_text(daemon->node->arena, daemon->program);

	*strchr(role, '-') = '_';
	return role;
}

static void socket_hand_over(int fd)
{
	char pid[24];

	if (fd < 0)
		return;
	if (fd == 3)
		fcntl(fd, F_SETFD, 0);
	else
		dup2(fd, 3);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
}

static void become(const struct test_daemon *daemon, const char *database)
{
	struct arena *arena = daemon->node->arena;
	const char *dir = getenv("POSTRIDER_BUILD_DIR");
	const char *path = arena_printf(
	    arena, "%s/%s", dir && *dir ? dir : ".", daemon->program);
	const char *conf = arena_printf(arena, "%s/conf", daemon->node->dir);
	int log =
	    open(daemon->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(log, STDERR_FILENO);
	setenv("POSTRIDER_ALLOW_ROOT", "1", 1);
	setenv("NOTIFY_SOCKET", daemon->notify_path, 1);
	setenv("POSTRIDER_DATABASE", database, 1);
	setenv("ASAN_OPTIONS", "detect_leaks=1", 1);
	settings_export(defaults);
	settings_export(daemon->settings);
	socket_hand_over(daemon->socket);
	execl(path, daemon->program, "--config", conf, (char *)NULL);
	dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
	_exit(127);
}

static void launch(struct test_daemon *daemon)
{
	const struct test_node *node = daemon->node;
	const char *database =
	    test_db_as(node->arena, node->database, role_of(daemon));

	daemon->pid = fork();
	cr_assert(daemon->pid >= 0);
	if (daemon->pid == 0)
		become(daemon, database);
}

static struct test_daemon *daemon_add(
    struct test_node *node, const char *program, const char *const *settings)
{
	struct test_daemon *daemon = &node->daemons[node->daemon_count];

	cr_assert(node->daemon_count < TEST_DAEMONS_MAX);
	*daemon = (struct test_daemon){
		.program = program,
		.log = arena_printf(
		    node->arena, "%s/log.%zu", node->dir, node->daemon_count),
		.notify_path = arena_printf(node->arena, "%s/notify.%zu",
		    node->dir, node->daemon_count),
		.settings = settings,
		.socket = -1,
		.node = node,
	};
	daemon->notify = notify_socket(daemon->notify_path);
	node->daemon_count++;
	return daemon;
}

static void ready_await(struct test_daemon *daemon)
{
	if (test_daemon_says(daemon, "READY=1", TEST_READY_MS))
		return;
	test_fail("%s is not ready, see %s", daemon->program, daemon->log);
}

struct test_daemon *test_frontd_start_only(
    struct test_node *node, const char *const *settings)
{
	struct test_daemon *daemon =
	    daemon_add(node, "postrider-frontd", settings);

	daemon->socket = node->socket >= 0 ? node->socket : socket_listening();
	node->socket = -1;
	daemon->port = port_of(daemon->socket);
	launch(daemon);
	return daemon;
}

struct test_daemon *test_frontd(
    struct test_node *node, const char *const *settings)
{
	struct test_daemon *daemon = test_frontd_start_only(node, settings);

	ready_await(daemon);
	return daemon;
}

static struct test_daemon *daemon_run(
    struct test_node *node, const char *program, const char *const *settings)
{
	struct test_daemon *daemon = daemon_add(node, program, settings);

	launch(daemon);
	ready_await(daemon);
	return daemon;
}

struct test_daemon *test_outboxd(
    struct test_node *node, const char *const *settings)
{
	return daemon_run(node, "postrider-outboxd", settings);
}

struct test_daemon *test_janitord(
    struct test_node *node, const char *const *settings)
{
	return daemon_run(node, "postrider-janitord", settings);
}

void test_daemon_again(struct test_daemon *daemon)
{
	cr_assert(daemon->pid == 0);
	launch(daemon);
	ready_await(daemon);
}

/* ---- watching ---- */

bool test_daemon_says(struct test_daemon *daemon, const char *text, int ms)
{
	int64_t until_ms = clock_steady_ms() + test_patience_ms(ms);
	struct pollfd ready = { .fd = daemon->notify, .events = POLLIN };
	char said[1024];

	for (;;) {
		int64_t left_ms = until_ms - clock_steady_ms();
		ssize_t len;

		if (left_ms < 0 || poll(&ready, 1, (int)left_ms) != 1)
			return false;
		len = recv(daemon->notify, said, sizeof(said) - 1, 0);
		if (len < 0)
			return false;
		said[len] = '\0';
		if (strstr(said, text))
			return true;
	}
}

struct log_search {
	const struct test_daemon *daemon;
	const char *text;
};

static bool log_holds(void *arg)
{
	const struct log_search *search = arg;
	FILE *file = fopen(search->daemon->log, "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (file && !found && getline(&line, &room, file) >= 0)
		found = strstr(line, search->text) != NULL;
	free(line);
	if (file)
		fclose(file);
	return found;
}

bool test_daemon_logged(
    const struct test_daemon *daemon, const char *text, int ms)
{
	struct log_search search = { daemon, text };

	return test_until(log_holds, &search, ms);
}

int64_t test_daemon_rss_kb(const struct test_daemon *daemon)
{
	char path[64];
	char line[256];
	int64_t kb = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)daemon->pid);
	file = fopen(path, "re");
	while (file && kb < 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = strtoll(line + 6, NULL, 10);
	if (file)
		fclose(file);
	return kb;
}

/* ---- ending ---- */

static bool is_report(const char *line)
{
	return strstr(line, "ERROR: AddressSanitizer") ||
	    strstr(line, "ERROR: LeakSanitizer") ||
	    strstr(line, "runtime error:");
}

/* A sanitizer's report ends the log: shown, and the test fails. */
static void expect_no_report(const struct test_daemon *daemon)
{
	FILE *file = fopen(daemon->log, "re");
	char *line = NULL;
	size_t room = 0;
	int lines = 0;

	while (file && lines < REPORT_LINES_MAX &&
	    getline(&line, &room, file) >= 0)
		if (lines || is_report(line)) {
			fputs(line, stderr);
			lines++;
		}
	free(line);
	if (file)
		fclose(file);
	cr_expect(!lines, "%s: a sanitizer's report", daemon->program);
}

struct waiting {
	struct test_daemon *daemon;
	int status;
};

static bool has_ended(void *arg)
{
	struct waiting *waiting = arg;

	return waitpid(waiting->daemon->pid, &waiting->status, WNOHANG) ==
	    waiting->daemon->pid;
}

int test_daemon_ended(struct test_daemon *daemon, int ms)
{
	struct waiting waiting = { .daemon = daemon };

	cr_assert(daemon->pid > 0);
	if (!test_until(has_ended, &waiting, ms))
		return -1000;
	daemon->pid = 0;
	expect_no_report(daemon);
	if (WIFSIGNALED(waiting.status))
		return -WTERMSIG(waiting.status);
	return WEXITSTATUS(waiting.status);
}

int test_daemon_stop(struct test_daemon *daemon)
{
	kill(daemon->pid, SIGTERM);
	return test_daemon_ended(daemon, KILL_AFTER_MS);
}

void test_daemon_kill(struct test_daemon *daemon)
{
	if (daemon->pid <= 0)
		return;
	kill(daemon->pid, SIGKILL);
	waitpid(daemon->pid, NULL, 0);
	daemon->pid = 0;
}

/* ---- the end of a node ---- */

static void dir_remove(const struct test_node *node)
{
	static const char *const names[] = { "conf", "key" };

	for (size_t i = 0; i < COUNT(names); i++)
		unlink(arena_printf(node->arena, "%s/%s", node->dir, names[i]));
	for (size_t i = 0; i < node->daemon_count; i++) {
		unlink(node->daemons[i].log);
		unlink(node->daemons[i].notify_path);
	}
	rmdir(node->dir);
}

/* All at once: each takes its time to look for leaks. */
static void daemons_end(struct test_node *node)
{
	for (size_t i = 0; i < node->daemon_count; i++)
		if (node->daemons[i].pid > 0) {
			kill(node->daemons[i].pid, SIGCONT);
			kill(node->daemons[i].pid, SIGTERM);
		}
	for (size_t i = 0; i < node->daemon_count; i++) {
		struct test_daemon *daemon = &node->daemons[i];
		int status = daemon->pid > 0
		    ? test_daemon_ended(daemon, PATIENCE_MS)
		    : 0;

		cr_expect(status == 0 || status == -1000,
		    "%s ended with %d: %s", daemon->program, status,
		    daemon->log);
		test_daemon_kill(daemon);
	}
}

void test_node_free(struct test_node **node)
{
	if (!*node)
		return;
	daemons_end(*node);
	for (size_t i = 0; i < (*node)->daemon_count; i++) {
		struct test_daemon *daemon = &(*node)->daemons[i];

		close(daemon->notify);
		if (daemon->socket >= 0)
			close(daemon->socket);
	}
	if ((*node)->socket >= 0)
		close((*node)->socket);
	test_db_drop(&(*node)->database);
	dir_remove(*node);
	arena_free(&(*node)->arena);
	free(*node);
	*node = NULL;
}

/* ---- people ---- */

struct test_person test_person(
    struct test_node *node, int port, const char *username)
{
	const char *body = arena_printf(node->arena,
	    "{\"username\":\"%s\",\"password\":\"" TEST_PASSWORD "\"}",
	    username);
	struct test_reply reply =
	    test_post(node->arena, port, "/api/auth/register", NULL, body);

	cr_assert(reply.status == 201, "register %s: %d %s", username,
	    reply.status, reply.body);
	return (struct test_person){
		.username = username,
		.id = test_text(node->arena, &reply, "user.id"),
		.token = test_text(node->arena, &reply, "token"),
	};
}

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/daemon.h"

/*
 * The daemon under test is a child process; it reports what is called on a
 * pipe, a letter a call, and tells its supervisor on a socket.
 */
enum { PATIENCE_MS = 20000 };

struct duck_conf {
	struct conf_common common;
	int64_t depth;
};

#define CONF duck_conf
static const struct conf_key keys[] = {
	KEY(INT, depth, "3", "0", "9", LIVE, "How deep it dives."),
	{ 0 },
};

static struct duck_conf conf;
static char folder[] = "/tmp/postrider-daemon-XXXXXX";
static char file[128];
static int supervisor;
static int calls[2];
static pid_t child;
static bool never_drained;
static bool start_fails;

static void report(char letter)
{
	cr_assert_eq(write(calls[1], &letter, 1), 1);
}

static bool start(struct daemon *daemon, struct err *err)
{
	daemon->state = &conf;
	report('s');
	if (start_fails)
		return err_set(err, ERR_BUSY, "no water");
	return true;
}

static void wake(struct daemon *daemon)
{
	report(daemon->state == &conf ? 'w' : '?');
}

static void drain(struct daemon *daemon UNUSED)
{
	report('d');
}

static bool drained(struct daemon *daemon UNUSED)
{
	return !never_drained;
}

static bool alive(struct daemon *daemon UNUSED)
{
	report('a');
	return true;
}

static void stop(struct daemon *daemon UNUSED)
{
	report('0' + (char)conf.depth);
}

static const struct daemon_def def = {
	.name = "duck",
	.keys = keys,
	.conf = &conf,
	.start = start,
	.wake = wake,
	.drain = drain,
	.drained = drained,
	.alive = alive,
	.stop = stop,
};

static void write_config(const char *text)
{
	FILE *out = fopen(file, "we");

	cr_assert_not_null(out);
	fputs(text, out);
	fclose(out);
}

static void setup(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	cr_assert_not_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/duck.conf", folder);
	snprintf(
	    address.sun_path, sizeof(address.sun_path), "%s/notify", folder);
	supervisor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(supervisor, (const struct sockaddr *)&address,
			 sizeof(address)),
	    0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	setenv("POSTRIDER_ALLOW_ROOT", "1", 1);
	cr_assert_eq(pipe(calls), 0);
	write_config("origin = http://a.test\n");
}

static void teardown(void)
{
	char path[128];

	unlink(file);
	snprintf(path, sizeof(path), "%s/notify", folder);
	unlink(path);
	rmdir(folder);
}

TestSuite(daemon, .init = setup, .fini = teardown, .timeout = 300);

static void run_with(const char *option)
{
	char *argv[] = { (char[]){ "duck" }, (char[]){ "--config" }, file,
		option ? strdup(option) : NULL, NULL };

	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(daemon_main(&def, option ? 4 : 3, argv));
	free(argv[3]);
}

static bool readable(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	return poll(&ready, 1, PATIENCE_MS) == 1;
}

static void expect_told(const char *start_of_text)
{
	char text[600] = "";

	cr_assert(readable(supervisor), "nothing told, not %s", start_of_text);
	cr_assert_gt(recv(supervisor, text, sizeof(text) - 1, 0), 0);
	cr_expect_eq(
	    strncmp(text, start_of_text, strlen(start_of_text)), 0, "%s", text);
}

static void expect_calls(const char *letters)
{
	char letter = 0;

	for (; *letters; letters++) {
		cr_assert(readable(calls[0]), "no call %c", *letters);
		cr_assert_eq(read(calls[0], &letter, 1), 1);
		cr_expect_eq(letter, *letters, "%c, not %c", letter, *letters);
	}
}

static int exit_code(void)
{
	int status = 0;

	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

Test(daemon, starts_is_ready_wakes_drains_and_stops)
{
	run_with(NULL);
	expect_told("READY=1");
	expect_calls("sw");
	kill(child, SIGTERM);
	expect_told("STOPPING=1");
	expect_calls("d3");
	cr_expect_eq(exit_code(), 0);
}

Test(daemon, waits_for_the_grace_time_and_no_longer)
{
	never_drained = true;
	write_config("origin = http://a.test\nstop_grace = 50ms\n");
	run_with(NULL);
	expect_told("READY=1");
	kill(child, SIGINT);
	expect_calls("swd3");
	cr_expect_eq(exit_code(), 0);
}

Test(daemon, a_second_signal_ends_at_once)
{
	never_drained = true;
	write_config("origin = http://a.test\nstop_grace = 10min\n");
	run_with(NULL);
	expect_calls("sw");
	kill(child, SIGTERM);
	expect_calls("d");
	kill(child, SIGTERM);
	cr_expect_eq(exit_code(), EXIT_FAILURE);
}

Test(daemon, a_reload_is_told_and_applied)
{
	run_with(NULL);
	expect_told("READY=1");
	write_config("origin = http://a.test\ndepth = 8\n");
	kill(child, SIGHUP);
	expect_told("RELOADING=1");
	expect_told("READY=1");
	write_config("origin = http://a.test\ndepth = 99\n");
	kill(child, SIGHUP);
	expect_told("RELOADING=1");
	expect_told("READY=1");
	kill(child, SIGTERM);
	expect_calls("swd8");
	cr_expect_eq(exit_code(), 0);
}

Test(daemon, feeds_the_watchdog_after_a_proof_of_work)
{
	setenv("WATCHDOG_USEC", "30000", 1);
	run_with(NULL);
	expect_told("READY=1");
	expect_told("WATCHDOG=1");
	expect_told("WATCHDOG=1");
	expect_calls("swaa");
	kill(child, SIGKILL);
	cr_expect_eq(exit_code(), 1000);
}

/* How many lines wait for a supervisor that does not read. */
static int lines_waiting_max(void)
{
	FILE *in = fopen("/proc/sys/net/unix/max_dgram_qlen", "re");
	char text[24] = "";

	cr_assert_not_null(in);
	cr_assert_not_null(fgets(text, sizeof(text), in));
	fclose(in);
	return (int)strtol(text, NULL, 10);
}

Test(daemon, a_supervisor_that_does_not_listen_stops_nothing)
{
	int room = lines_waiting_max();

	setenv("WATCHDOG_USEC", "3000", 1);
	run_with(NULL);
	expect_calls("sw");
	for (int i = 0; i < room + 20; i++)
		expect_calls("a");
	kill(child, SIGTERM);
	cr_expect_eq(exit_code(), 0);
}

Test(daemon, a_failed_start_is_the_end)
{
	start_fails = true;
	run_with(NULL);
	expect_calls("s");
	cr_expect_eq(exit_code(), EXIT_FAILURE);
}

Test(daemon, a_wrong_config_is_refused_with_its_own_code)
{
	write_config("origin = http://a.test\ndepth = 99\n");
	run_with(NULL);
	cr_expect_eq(exit_code(), 78);
	run_with("--check-config");
	cr_expect_eq(exit_code(), 78);
	write_config("depth = 1\n");
	run_with("--check-config");
	cr_expect_eq(exit_code(), 78, "origin is not set");
	write_config("origin = http://a.test\n");
	run_with("--check-config");
	cr_expect_eq(exit_code(), 0);
	cr_assert_eq(close(calls[1]), 0);
	cr_expect_eq(read(calls[0], file, 1), 0, "nothing was started");
}

Test(daemon, a_wrong_option_is_a_misuse)
{
	run_with("--frobnicate");
	cr_expect_eq(exit_code(), 64);
}

Test(daemon, refuses_root_unless_it_is_allowed)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
	unsetenv("POSTRIDER_ALLOW_ROOT");
	run_with(NULL);
	cr_expect_eq(exit_code(), 77);
}

/* Another process, since fd 3 of this one is the test's own. */
static int sockets_of_child(const char *count, bool for_child)
{
	char pid[32];

	child = fork();
	cr_assert_geq(child, 0);
	if (child > 0)
		return exit_code();
	snprintf(pid, sizeof(pid), "%d", for_child ? (int)getpid() : 1);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", count, 1);
	if (dup2(STDERR_FILENO, 3) != 3)
		_exit(EXIT_FAILURE);
	_exit(10 + daemon_inherited_sockets());
}

Test(daemon, inherited_sockets_are_those_meant_for_this_process)
{
	cr_expect_eq(daemon_inherited_sockets(), 0);
	cr_expect_eq(sockets_of_child("1", true), 11);
	cr_expect_eq(sockets_of_child("1", false), 10);
	cr_expect_eq(sockets_of_child("-1", true), 10);
	cr_expect_eq(sockets_of_child("9999999999", true), 10);
}

Test(daemon, a_run_has_one_random_name)
{
	cr_expect_eq(strlen(daemon_run_id()), 16);
	cr_expect_eq(strspn(daemon_run_id(), "0123456789abcdef"), 16);
	cr_expect_eq(daemon_run_id(), daemon_run_id());
}

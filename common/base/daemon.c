#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/base/build.h"
#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/supervisor.h"

enum {
	DRAIN_POLL_MS = 20,
	HOUSE_MS = 1000,
	/* Memory comes and goes with every batch and request: asking the kernel
	 * for it each time, zeroed, was a seventh of outboxd's work. */
	MEMORY_MAPPED = 1 << 20, /* bytes; what is larger is mapped */
	MEMORY_KEPT = 8 << 20	 /* free, by each thread's part of the heap */
};

/* What the command line asks for. */
enum command { RUN, CHECK_CONFIG, HELP_CONFIG, HELP, VERSION, MISUSE };

struct life {
	const struct daemon_def *def;
	struct daemon daemon;
	const char *file;
	struct loop_timer *drain;
	struct loop_timer *watchdog;
	struct loop_timer *house;
	int64_t watchdog_ms;
	int64_t stop_at; /* steady; 0: not stopping */
};

static struct metric loop_lag = {
	.name = "loop_lag_seconds",
	.help = "How late the event loop ran its last tick.",
	.type = METRIC_GAUGE,
};
static struct metric reload_ok = {
	.name = "config_last_reload_successful",
	.help = "Whether the last reading of the configuration was applied.",
	.type = METRIC_GAUGE,
};
static struct metric reload_time = {
	.name = "config_last_reload_success_timestamp_seconds",
	.help = "When the configuration was last applied.",
	.type = METRIC_GAUGE,
};

/* ---- the supervisor ---- */

void daemon_status(const char *format, ...)
{
	char text[512] = "STATUS=";
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - len, format, args);
	va_end(args);
	supervisor_mention(text);
}

void daemon_refuse(const struct err *err)
{
	log_error("daemon.failed", F("err", v_text(err->text)));
	_exit(EX_CONFIG);
}

void daemon_ready(void)
{
	static bool told;

	if (told)
		return;
	told = true;
	supervisor_tell("READY=1");
	log_info("daemon.ready", F("run", v_text(daemon_run_id())));
}

int daemon_inherited_sockets(void)
{
	return supervisor_sockets();
}

const char *daemon_run_id(void)
{
	static char id[17];
	unsigned char bytes[8];

	if (id[0])
		return id;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort();
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	return id;
}

/* ---- configuration ---- */

static const struct conf_common *common(const struct life *life)
{
	return life->def->conf;
}

static void level_apply(const struct life *life)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(common(life)->log_level, names[i]) == 0)
			log_level_set((enum log_level)i);
}

static bool config_read(struct life *life, struct err *err)
{
	/* Without --config the usual file is read if it is there. */
	if (!life->file && access(POSTRIDER_CONF_FILE, R_OK) == 0)
		life->file = POSTRIDER_CONF_FILE;
	if (!conf_load(life->def->keys, life->def->conf, life->file, err))
		return false;
	level_apply(life);
	return common(life)->origin[0] ||
	    err_set(err, ERR_INVALID, "origin is not set");
}

static void config_applied(bool ok)
{
	metric_set(&reload_ok, 0, ok);
	if (ok)
		metric_set(&reload_time, 0, (double)clock_wall_ms() / 1000.0);
}

static void on_hup(void *arg)
{
	struct life *life = arg;
	struct err err = { 0 };
	char text[64];
	bool ok;

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
	    clock_steady_us());
	supervisor_tell(text);
	ok = conf_reload(life->def->keys, life->def->conf, life->file, &err);
	level_apply(life);
	config_applied(ok);
	if (ok)
		log_info("config.reloaded");
	else
		log_error("config.refused", F("err", v_text(err.text)));
	supervisor_tell("READY=1");
}

/* ---- stopping ---- */

static void on_drain(void *arg)
{
	struct life *life = arg;
	bool drained = !life->def->drained || life->def->drained(&life->daemon);

	if (!drained && clock_steady_ms() < life->stop_at) {
		loop_timer_arm(life->drain, DRAIN_POLL_MS);
		return;
	}
	if (!drained)
		log_warn("daemon.grace_over");
	loop_stop(life->daemon.loop);
}

static void on_term(void *arg)
{
	struct life *life = arg;

	if (life->stop_at)
		_exit(EXIT_FAILURE);
	life->stop_at = clock_steady_ms() + common(life)->stop_grace;
	supervisor_tell("STOPPING=1");
	log_info("daemon.stopping");
	if (life->def->drain)
		life->def->drain(&life->daemon);
	on_drain(life);
}

/* ---- running ---- */

static void on_watchdog(void *arg)
{
	struct life *life = arg;

	if (!life->def->alive || life->def->alive(&life->daemon))
		supervisor_mention("WATCHDOG=1");
	else
		log_error("daemon.stalled");
	loop_timer_arm(life->watchdog, life->watchdog_ms / 3);
}

static void on_house(void *arg)
{
	struct life *life = arg;

	metric_set(&loop_lag, 0, (double)loop_lag_us(life->daemon.loop) / 1e6);
	loop_timer_arm(life->house, HOUSE_MS);
}

static void life_begin(struct life *life)
{
	struct loop *loop = loop_new();

	metrics_register(&loop_lag);
	metrics_register(&reload_ok);
	metrics_register(&reload_time);
	config_applied(true);
	life->daemon.loop = loop;
	life->daemon.conf = common(life);
	life->drain = loop_timer_new(loop, on_drain, life);
	life->house = loop_timer_new(loop, on_house, life);
	life->watchdog = loop_timer_new(loop, on_watchdog, life);
	life->watchdog_ms = supervisor_watchdog_ms();
	signal(SIGPIPE, SIG_IGN);
	loop_signal(loop, SIGHUP, on_hup, life);
	loop_signal(loop, SIGTERM, on_term, life);
	loop_signal(loop, SIGINT, on_term, life);
}

static void life_end(struct life *life)
{
	loop_timer_free(&life->drain);
	loop_timer_free(&life->house);
	loop_timer_free(&life->watchdog);
	loop_free(&life->daemon.loop);
}

static int life_run(struct life *life)
{
	const struct daemon_def *def = life->def;
	struct daemon *daemon = &life->daemon;
	struct err err = { 0 };

	life_begin(life);
	if (!def->start(daemon, &err)) {
		log_error("daemon.failed", F("err", v_text(err.text)));
		life_end(life);
		return EXIT_FAILURE;
	}
	if (!daemon->ready_later)
		daemon_ready();
	if (def->wake)
		def->wake(daemon);
	on_house(life);
	if (life->watchdog_ms)
		on_watchdog(life);
	loop_run(daemon->loop);
	if (def->stop)
		def->stop(daemon);
	life_end(life);
	log_info("daemon.stopped");
	return EXIT_SUCCESS;
}

/* ---- the command line ---- */

static enum command arguments(struct life *life, int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check-config", no_argument, NULL, 't' },
		{ "help-config", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	enum command command = RUN;
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'c')
			life->file = optarg;
		else if (option == 't')
			command = CHECK_CONFIG;
		else if (option == 'k')
			command = HELP_CONFIG;
		else if (option == 'h')
			command = HELP;
		else if (option == 'V')
			command = VERSION;
		else
			return MISUSE;
	}
	return optind < argc ? MISUSE : command;
}

static int usage(const struct life *life, FILE *out, int code)
{
	fprintf(out,
	    "usage: postrider-%s [--config FILE] "
	    "[--check-config | --help-config | --version | --help]\n",
	    life->def->name);
	return code;
}

static int help_config(const struct life *life)
{
	struct buf out;

	buf_init(&out, NULL, 1 << 20);
	conf_help(life->def->keys, &out);
	fputs(out.data, stdout);
	buf_done(&out);
	return EXIT_SUCCESS;
}

static int run(struct life *life, bool check_only)
{
	struct err err = { 0 };
	const char *instance;

	log_daemon_set(life->def->name, NULL);
	if (!config_read(life, &err)) {
		log_error("config.refused", F("err", v_text(err.text)));
		return EX_CONFIG;
	}
	if (check_only) {
		puts("configuration is fine");
		return EXIT_SUCCESS;
	}
	instance = common(life)->instance;
	log_daemon_set(life->def->name, instance);
	metrics_daemon_set(
	    life->def->name, instance[0] ? instance : daemon_run_id());
	if (geteuid() == 0 && !getenv("POSTRIDER_ALLOW_ROOT")) {
		log_error(
		    "daemon.root", F("err", v_text("does not run as root")));
		return EX_NOPERM;
	}
	return life_run(life);
}

int daemon_main(const struct daemon_def *def, int argc, char **argv)
{
	struct life life = { .def = def };

	mallopt(M_MMAP_THRESHOLD, MEMORY_MAPPED);
	mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT);
	switch (arguments(&life, argc, argv)) {
	case HELP:
		return usage(&life, stdout, EXIT_SUCCESS);
	case MISUSE:
		return usage(&life, stderr, EX_USAGE);
	case VERSION:
		printf("postrider-%s %s\n", def->name, POSTRIDER_VERSION);
		return EXIT_SUCCESS;
	case HELP_CONFIG:
		return help_config(&life);
	case CHECK_CONFIG:
		return run(&life, true);
	case RUN:
		break;
	}
	return run(&life, false);
}

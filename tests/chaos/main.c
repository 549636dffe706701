/*
 * chaos -- nodes that lose nothing, whatever is done to them.
 *
 *   chaos [--seed N] [--rounds N] [--scenario NAME|all|pressure|converge]
 *         [--seconds MAX] [--drain-seconds MAX] [--no-operator] [--keep]
 *         [--burst EVENTS] [--snapshot-seconds N] [--nodes N] [--guests]
 *
 * Ends with 1 when anything is missing, doubled or out of order. README.md
 * says what is done and what is checked.
 */
#include <getopt.h>
#include <signal.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/chaos/check.h"
#include "tests/chaos/converge.h"
#include "tests/chaos/play.h"
#include "tests/chaos/pressure.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
	(void)signal;
	interrupted = 1;
}

bool chaos_interrupted(void)
{
	return interrupted;
}

void pause_ms(int ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&pause, NULL);
}

/* ---- a scenario ---- */

struct run {
	const struct options *options;
	struct site *site;
	struct crowd *crowd;
	const struct scenario *scenario;
	struct faults faults;
	int64_t recovery_ms; /* -1: not in time */
	int64_t people_ms;   /* until nobody waited for an answer */
	int unexpected;
	bool checked;
	struct verdict verdict;
};

static bool crowd_done_yet(const void *crowd)
{
	return crowd_is_done(crowd);
}

static bool people_write(struct run *run, struct err *err)
{
	int ms = run->options->seconds * 1000;
	bool ok;

	crowd_start(run->crowd, run->options->rounds, ms * 3 / 4);
	ok = play_faults(&run->faults, ms, crowd_done_yet, run->crowd, err);
	crowd_stop(run->crowd);
	faults_end(&run->faults);
	return ok;
}

static int written(const struct crowd *crowd, int *unknown)
{
	int sum = 0;

	*unknown = 0;
	for (int i = 0; i < ACTORS; i++) {
		sum += crowd->actors[i].acts;
		*unknown += crowd->actors[i].unknown;
	}
	return sum;
}

static bool run_is_good(const struct run *run)
{
	return run->checked && run->recovery_ms >= 0 && !run->unexpected &&
	    verdict_is_good(&run->verdict);
}

static void report(const struct run *run, int actions, int unknown)
{
	const struct verdict *v = &run->verdict;
	const char *name = run->scenario->name;

	printf("figure=chaos_%s_recovery value=%" PRId64 " unit=ms\n", name,
	    run->recovery_ms);
	printf(
	    "figure=chaos_%s_lost value=%d unit=messages\n", name, v->missing);
	printf("scenario=%s seed=%" PRIu64
	       " actions=%d unknown=%d faults=%d starts=%d messages=%" PRId64
	       " entries=%" PRId64 " recovery_ms=%" PRId64 " people_ms=%" PRId64
	       " missing=%d doubled=%d differing=%d unordered=%d dead=%d"
	       " unexpected=%d verdict=%s\n",
	    name, run->options->seed, actions, unknown, run->faults.done,
	    run->site->starts, v->messages, v->entries, run->recovery_ms,
	    run->people_ms, v->missing, v->doubled, v->differing, v->unordered,
	    v->dead, run->unexpected, run_is_good(run) ? "good" : "bad");
	fflush(stdout);
}

static bool scenario_run(struct site *site, struct crowd *crowd,
    const struct scenario *scenario, const struct options *options)
{
	struct run run = { .options = options,
		.site = site,
		.crowd = crowd,
		.scenario = scenario,
		.unexpected = -site->unexpected };
	struct err err = { 0 };
	int unknown_before;
	int before = written(crowd, &unknown_before);
	int unknown;
	int actions;
	bool ok;

	faults_begin(&run.faults, site, scenario, options);
	ok = people_write(&run, &err);
	run.recovery_ms =
	    play_recovery(site, options, crowd_done_yet, crowd, &run.people_ms);
	crowd_join(crowd);
	if (interrupted)
		return false;
	run.unexpected += site->unexpected + site_reports(site);
	actions = written(crowd, &unknown) - before;
	run.checked = ok && check_all(site, crowd, &run.verdict, &err);
	if (!run.checked)
		fprintf(stderr, "chaos: %s: %s\n", scenario->name, err.text);
	report(&run, actions, unknown - unknown_before);
	return run_is_good(&run);
}

static bool is_wanted(const struct options *options, const char *name)
{
	return strcmp(options->scenario, name) == 0 ||
	    strcmp(options->scenario, "all") == 0;
}

static bool scenarios_run(struct site *site, const struct options *options)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	bool good = crowd != NULL;

	crowd_init(crowd, site, options->seed);
	for (size_t i = 0; scenario_at(i) && good && !interrupted; i++)
		if (is_wanted(options, scenario_at(i)->name))
			good =
			    scenario_run(site, crowd, scenario_at(i), options);
	crowd_done(crowd);
	free(crowd);
	return good;
}

/* ---- options ---- */

static const struct option option_names[] = {
	{ "seed", required_argument, NULL, 's' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "scenario", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 't' },
	{ "drain-seconds", required_argument, NULL, 'd' },
	{ "no-operator", no_argument, NULL, 'o' },
	{ "keep", no_argument, NULL, 'k' },
	{ "burst", required_argument, NULL, 'b' },
	{ "snapshot-seconds", required_argument, NULL, 'i' },
	{ "nodes", required_argument, NULL, 'c' },
	{ "guests", no_argument, NULL, 'g' },
	{ NULL, 0, NULL, 0 },
};

static bool number_read(const char *text, int *number)
{
	char *end;
	long read = strtol(text, &end, 10);

	if (*end || end == text || read < 1 || read > 100000000)
		return false;
	*number = (int)read;
	return true;
}

static bool option_read(struct options *options, int option)
{
	switch (option) {
	case 's':
		options->seed = strtoull(optarg, NULL, 10);
		return true;
	case 'r':
		return number_read(optarg, &options->rounds);
	case 'n':
		options->scenario = optarg;
		return true;
	case 't':
		return number_read(optarg, &options->seconds);
	case 'd':
		return number_read(optarg, &options->drain_s);
	case 'o':
		options->operator_retries = false;
		return true;
	case 'g':
		options->guests = true;
		return true;
	case 'k':
		options->keep = true;
		return true;
	case 'b':
		return number_read(optarg, &options->burst);
	case 'i':
		return number_read(optarg, &options->snapshot_s);
	case 'c':
		return number_read(optarg, &options->nodes) &&
		    options->nodes >= 2 && options->nodes <= SIDES_MAX;
	}
	return false;
}

static bool converges(const struct options *options)
{
	return strcmp(options->scenario, "converge") == 0;
}

static bool options_read(struct options *options, int argc, char **argv)
{
	bool known;
	int option;

	while ((option = getopt_long(argc, argv, "", option_names, NULL)) != -1)
		if (!option_read(options, option))
			return false;
	known = is_wanted(options, "pressure") || converges(options);
	for (size_t i = 0; scenario_at(i); i++)
		known = known || is_wanted(options, scenario_at(i)->name);
	if (!known)
		fprintf(stderr, "chaos: no scenario %s\n", options->scenario);
	return known && optind == argc;
}

static int nodes_of(const struct options *options)
{
	return converges(options) ? options->nodes : SIDES;
}

int main(int argc, char **argv)
{
	struct options options = {
		.seed = 1,
		.rounds = 400,
		.seconds = 20,
		.drain_s = 120,
		.operator_retries = true,
		.scenario = "all",
		.burst = 100000,
		.snapshot_s = 60,
		.nodes = SIDES_MAX,
	};
	const struct sigaction act = { .sa_handler = on_signal };
	struct site site;
	struct err err = { 0 };
	bool good;

	if (!options_read(&options, argc, argv)) {
		fprintf(stderr, "usage: see tests/chaos/README.md\n");
		return 2;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	good = site_begin(&site, nodes_of(&options), &options, &err) &&
	    (converges(&options) || people_begin(&site, &err));
	if (!good)
		fprintf(stderr, "chaos: %s\n", err.text);
	else if (converges(&options))
		good = converge_run(&site, &options);
	else if (strcmp(options.scenario, "pressure") == 0)
		good = pressure_run(&site, &options);
	else
		good = scenarios_run(&site, &options);
	if (!good && !interrupted)
		fprintf(stderr, "chaos: failed with --seed %" PRIu64 "\n",
		    options.seed);
	site_end(&site, options.keep);
	return good && !interrupted ? 0 : 1;
}

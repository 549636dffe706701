#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/conf.h"

struct fish_conf {
	struct conf_common common;
	const char *name;
	const char *mood;
	int64_t wait;
	int64_t room;
	int64_t count;
	bool wet;
};

#define CONF fish_conf
static const struct conf_key keys[] = {
	KEY(TEXT, name, "fish", NULL, NULL, BOOT, "Its name."),
	KEY(TEXT, mood, "calm", "calm wild", NULL, LIVE, "Its mood."),
	KEY(SPAN, wait, "30s", "1s", "5min", LIVE, "How long it waits."),
	KEY(SIZE, room, "10MB", "1kB", NULL, LIVE, "How much it needs."),
	KEY(INT, count, "3", NULL, "9", BOOT, "How many there are."),
	KEY(BOOL, wet, "on", NULL, NULL, LIVE, "Whether it is wet."),
	{ 0 },
};

static char folder[] = "/tmp/postrider-conf-XXXXXX";
static char file[64];
static struct fish_conf conf;
static struct err err;

static void write_text(const char *name, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	out = fopen(path, "we");
	cr_assert_not_null(out);
	fputs(text, out);
	fclose(out);
}

static void setup(void)
{
	char path[128];

	cr_assert_not_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/postrider.conf", folder);
	snprintf(path, sizeof(path), "%s/conf.d", folder);
	cr_assert_eq(mkdir(path, 0700), 0);
	write_text("postrider.conf", "");
}

static void teardown(void)
{
	static const char *const names[] = { "postrider.conf", "conf.d/10.conf",
		"conf.d/20.conf", "conf.d/30.txt", "conf.d", "" };
	char path[128];

	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		remove(path);
	}
}

TestSuite(conf, .init = setup, .fini = teardown);

static bool load(const char *text)
{
	write_text("postrider.conf", text);
	err = (struct err){ 0 };
	return conf_load(keys, &conf, file, &err);
}

Test(conf, defaults_are_written_as_an_operator_writes_them)
{
	cr_assert(conf_load(keys, &conf, NULL, &err), "%s", err.text);
	cr_expect_str_eq(conf.name, "fish");
	cr_expect_eq(conf.wait, 30000);
	cr_expect_eq(conf.room, 10 << 20);
	cr_expect_eq(conf.count, 3);
	cr_expect(conf.wet);
	cr_expect_eq(conf.common.workers, 4);
	cr_expect_str_eq(conf.common.log_level, "info");
}

Test(conf, a_file_sets_what_it_names)
{
	cr_assert(load("# a comment\n"
		       "  name = a fish called # wanda\n"
		       "wait=2s # the later line wins\n"
		       "wait = 2min\n"
		       "room = 2 kB\r\n"
		       "wet = off\n"
		       "\n"
		       "workers = 7"),
	    "%s", err.text);
	cr_expect_str_eq(conf.name, "a fish called");
	cr_expect_eq(conf.wait, 120000);
	cr_expect_eq(conf.room, 2048);
	cr_expect_not(conf.wet);
	cr_expect_eq(conf.common.workers, 7);
}

Test(conf, later_sources_win)
{
	write_text("conf.d/20.conf", "name = twenty\n");
	write_text("conf.d/10.conf", "name = ten\ncount = 1\n");
	write_text("conf.d/30.txt", "name = no\n");
	cr_assert(load("name = main\ncount = 9\nwait = 5s\n"));
	cr_expect_str_eq(conf.name, "twenty");
	cr_expect_eq(conf.count, 1);
	setenv("POSTRIDER_NAME", "env", 1);
	setenv("POSTRIDER_WAIT", "4s", 1);
	cr_assert(load("wait = 5s\n"));
	cr_expect_str_eq(conf.name, "env");
	cr_expect_eq(conf.wait, 4000);
}

Test(conf, settings_of_other_daemons_are_skipped)
{
	cr_expect(load("listen = whatever\n"), "%s", err.text);
}

Test(conf, what_is_wrong_is_named_with_its_place)
{
	/* clang-format off */
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{ "x = 1\n",              ":1: unknown setting x" },
		{ "\n\nname\n",           ":3: expected key = value" },
		{ "wait = 30\n",          ":1: wait must be a time such as 30s (ms, s, min, h, d)" },
		{ "wait = 30 seconds\n",  ":1: wait must be a time such as 30s (ms, s, min, h, d)" },
		{ "wait = 999ms\n",       ":1: wait must be at least 1s" },
		{ "wait = 0\n",           ":1: wait must be at least 1s" },
		{ "wait = 1h\n",          ":1: wait must be at most 5min" },
		{ "wait = 99999999999999d\n", ":1: wait must be a time such as 30s (ms, s, min, h, d)" },
		{ "room = 1TB\n",         ":1: room must be a size such as 10MB (kB, MB, GB)" },
		{ "room = 1\n",           ":1: room must be at least 1kB" },
		{ "count = 3.5\n",        ":1: count must be a whole number" },
		{ "count =\n",            ":1: count must be a whole number" },
		{ "count = 10\n",         ":1: count must be at most 9" },
		{ "wet = yes\n",          ":1: wet must be on or off" },
		{ "mood = wil\n",         ":1: mood must be one of: calm wild" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		cr_expect_not(load(cases[i].text), "%s", cases[i].text);
		cr_expect_eq(err.code, ERR_INVALID);
		cr_expect_not_null(strstr(err.text, cases[i].want), "%s: %s",
		    cases[i].text, err.text);
		cr_expect_not_null(strstr(err.text, "postrider.conf"));
	}
	setenv("POSTRIDER_COUNT", "x", 1);
	cr_expect_not(load(""));
	cr_expect_str_eq(err.text, "environment: count must be a whole number");
}

Test(conf, a_file_that_was_asked_for_must_be_there)
{
	cr_expect_not(conf_load(keys, &conf, "/nonexistent", &err));
	cr_expect_not_null(strstr(err.text, "cannot read /nonexistent"));
}

Test(conf, a_reload_applies_all_or_nothing)
{
	cr_assert(load("wait = 5s\nname = old\ncount = 1\n"));
	write_text("postrider.conf", "wait = 6s\nroom = wrong\n");
	cr_expect_not(conf_reload(keys, &conf, file, &err));
	cr_expect_eq(conf.wait, 5000);
	write_text("postrider.conf", "wait = 6s\nname = new\nmood = wild\n");
	cr_assert(conf_reload(keys, &conf, file, &err));
	cr_expect_eq(conf.wait, 6000);
	cr_expect_str_eq(conf.mood, "wild");
	cr_expect_str_eq(conf.name, "old", "a BOOT key stays as it was");
	cr_expect_eq(conf.count, 1);
}

Test(conf, a_changed_boot_key_is_named_in_the_log)
{
	char text[2000] = "";
	int lines[2];
	ssize_t len;

	cr_assert(load(""));
	cr_assert_eq(pipe(lines), 0);
	log_output_set(lines[1]);
	write_text("postrider.conf", "name = new\nwait = 2s\n");
	cr_assert(conf_reload(keys, &conf, file, &err));
	close(lines[1]);
	len = read(lines[0], text, sizeof(text) - 1);
	cr_expect_gt(len, 0);
	cr_expect_str_eq(
	    text, "level=warn event=config.needs_restart key=name\n");
}

Test(conf, help_shows_every_key_once_with_its_bounds)
{
	struct buf out;

	buf_init(&out, NULL, 1 << 20);
	conf_help(keys, &out);
	cr_expect_not_null(strstr(out.data,
	    "\nwait = 30s\n        How long it waits. From 1s to 5min.\n"));
	cr_expect_not_null(strstr(out.data,
	    "\ncount = 3\n        How many there are. At most 9. "
	    "Needs a restart.\n"));
	cr_expect_not_null(strstr(out.data, "One of: calm wild."));
	for (const struct conf_key *key = conf_common_keys; key->kind; key++)
		cr_expect_not_null(strstr(out.data, key->name));
	buf_done(&out);
}

Test(conf, the_list_of_all_names_has_the_common_ones)
{
	for (const struct conf_key *key = conf_common_keys; key->kind; key++) {
		bool found = false;

		for (size_t i = 0; conf_all_names[i]; i++)
			found |= strcmp(conf_all_names[i], key->name) == 0;
		cr_expect(found, "%s", key->name);
	}
}

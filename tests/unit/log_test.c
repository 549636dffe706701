#include <pthread.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/log.h"

static int lines[2];

static void capture(void)
{
	cr_assert_eq(pipe(lines), 0);
	log_output_set(lines[1]);
}

/* What was written since the last look. */
static const char *written(void)
{
	static char text[16384];
	ssize_t len;

	log_output_set(STDERR_FILENO);
	close(lines[1]);
	len = read(lines[0], text, sizeof(text) - 1);
	close(lines[0]);
	text[len > 0 ? len : 0] = '\0';
	capture();
	return text;
}

TestSuite(log, .init = capture);

Test(log, a_line_is_level_event_and_fields)
{
	const int64_t ids[] = { 1, 2 };

	log_info("outbox.sent", F("peer", v_text("https://a.test")),
	    F("entry", v_id(7)), F("ms", v_int(0)), F("user", v_id(0)),
	    F("ok", v_bool(true)), F("ids", v_ids(ids, 2)));
	cr_expect_str_eq(written(),
	    "level=info event=outbox.sent peer=https://a.test entry=7 ms=0 "
	    "ok=true ids=[1,2]\n");
	log_warn("bare");
	cr_expect_str_eq(written(), "level=warn event=bare\n");
}

Test(log, lines_below_the_level_are_not_written)
{
	log_debug("x");
	cr_expect_str_eq(written(), "");
	log_level_set(LOG_DEBUG);
	log_debug("x");
	cr_expect_str_eq(written(), "level=debug event=x\n");
	log_level_set(LOG_ERROR);
	log_warn("x");
	cr_expect_str_eq(written(), "");
}

Test(log, no_value_can_forge_a_line)
{
	static const struct {
		const char *value;
		const char *want;
	} cases[] = {
		{ "plain", "plain" },
		{ "two words", "\"two words\"" },
		{ "a\nlevel=error event=x", "\"a\\nlevel=error event=x\"" },
		{ "a=b", "\"a=b\"" },
		{ "say \"hi\"", "\"say \\\"hi\\\"\"" },
		{ "back\\slash", "\"back\\\\slash\"" },
		{ "\r\t\x1b\x7f", "\"\\x0d\\x09\\x1b\\x7f\"" },
		{ "\xc2\x85", "\"\\u0085\"" },
		{ "\xe2\x80\xa8", "\"\\u2028\"" },
		{ "\xff", "\"\\xff\"" },
		{ "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"" },
		{ "", "\"\"" },
	};
	char want[200];

	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(want, sizeof(want), "level=info event=e v=%s\n",
		    cases[i].want);
		log_info("e", F("v", v_text(cases[i].value)));
		cr_expect_str_eq(written(), want);
	}
}

Test(log, long_values_are_cut_and_the_line_still_ends)
{
	struct field fields[20];
	char value[3000];
	const char *line;

	memset(value, 'x', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	for (size_t i = 0; i < COUNT(fields); i++)
		fields[i] = F("v", v_text(value));
	log_write(LOG_INFO, "long", fields, COUNT(fields));
	line = written();
	cr_expect_leq(strlen(line), 4097);
	cr_expect_eq(line[strlen(line) - 1], '\n');
	cr_expect_not_null(strstr(line, "xxx...\""));
}

Test(log, bytes_are_never_shown)
{
	log_info("e", F("b", v_bytes((struct bytes){ "secret", 6 })));
	cr_expect_null(strstr(written(), "secret"));
}

static void *other_thread(void *arg UNUSED)
{
	log_info("other");
	return NULL;
}

Test(log, scopes_add_their_fields_to_lines_of_their_thread)
{
	const struct field outer[] = { F("req", v_text("r1")) };
	const struct field inner[] = { F("user", v_id(5)) };
	struct log_scope a;
	struct log_scope b;
	pthread_t thread;

	log_scope_begin(&a, outer, 1);
	log_scope_begin(&b, inner, 1);
	log_info("in", F("ms", v_int(1)));
	cr_expect_str_eq(written(), "level=info event=in req=r1 user=5 ms=1\n");
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	cr_expect_str_eq(written(), "level=info event=other\n");
	log_scope_end(&b);
	log_scope_end(&a);
	log_info("out");
	cr_expect_str_eq(written(), "level=info event=out\n");
}

Test(log, the_daemon_is_named_on_every_line)
{
	log_daemon_set("frontd", "a");
	log_info("x");
	cr_expect_str_eq(
	    written(), "level=info event=x daemon=frontd instance=a\n");
}

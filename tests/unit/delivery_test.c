/* Where an answer may lead a delivery, and where it may not. */
#include <criterion/criterion.h>

#include "common/fediverse/delivery.h"

#define FAR "https://far.example/users/bob/inbox"

static struct arena *arena;

static void begin(void)
{
	arena = arena_new();
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(delivery, .init = begin, .fini = end);

Test(delivery, a_redirect_keeps_to_https_and_ends)
{
	/* clang-format off */
	static const struct {
		int code;
		const char *location;
		const char *next; /* NULL: the end */
		const char *text;
	} cases[] = {
		{ 301, "/moved", "https://far.example/moved", NULL },
		{ 302, "moved", "https://far.example/users/bob/moved", NULL },
		{ 307, "https://other.example/i", "https://other.example/i", NULL },
		{ 308, "//other.example", "https://other.example/", NULL },
		{ 307, "https://OTHER.example:443/i", "https://other.example/i", NULL },
		{ 300, "/moved", NULL, "300: redirected not followed" },
		{ 303, "/moved", NULL, "303: redirected not followed" },
		{ 304, "/moved", NULL, "304: redirected not followed" },
		{ 307, NULL, NULL, "307: redirected it says not where to" },
		{ 307, "http://far.example/i", NULL, "307: redirected to plain http" },
		{ 301, "http://other.example/i", NULL, "301: redirected to plain http" },
		{ 308, FAR, NULL, "308: redirected in a circle" },
		{ 308, FAR "#x", NULL, "308: redirected in a circle" },
		{ 307, "ftp://far.example/i", NULL, "307: redirected to no http(s) URL" },
		{ 307, "https://u:p@far.example/", NULL, "307: redirected to no http(s) URL" },
		{ 307, "https://0x7f.1/", NULL, "307: redirected to no http(s) URL" },
	};
	/* clang-format on */
	const struct outbound_item item = { .target_inbox = FAR };
	const struct home home = { .key = NULL };

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct client_result result = {
			.outcome = CLIENT_ANSWERED,
			.head_status = cases[i].code,
			.location = cases[i].location,
		};
		struct delivery_try attempt;

		delivery_begin(&attempt, arena, &home, &item);
		cr_expect_eq(delivery_redirect(&attempt, &result),
		    cases[i].next != NULL, "%s", cases[i].location);
		if (cases[i].next)
			cr_expect_str_eq(attempt.urls[1], cases[i].next);
		else
			cr_expect_str_eq(attempt.outcome.text, cases[i].text);
	}
}

/* It was moved when it was really asked on another server. */
Test(delivery, what_was_led_to_another_server_is_told)
{
	/* clang-format off */
	static const struct { const char *last; bool made; bool moved; } cases[] = {
		{ "https://far.example/elsewhere", true,  false },
		{ "https://far.example:443/x",     true,  false },
		{ "https://far.example:444/x",     true,  true },
		{ "https://other.example/x",       true,  true },
		{ "https://other.example/x",       false, false },
	};
	/* clang-format on */
	const struct outbound_item item = { .target_inbox = FAR };
	const struct home home = { .key = NULL };

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct delivery_try attempt;
		const char *to;

		delivery_begin(&attempt, arena, &home, &item);
		attempt.urls[attempt.url_count++] = cases[i].last;
		attempt.outcome.made = cases[i].made;
		to = delivery_result(&attempt).moved_to;
		cr_expect_eq(to != NULL, cases[i].moved, "%s", cases[i].last);
	}
}

/* Our own network was down: as if it had not been tried. */
Test(delivery, what_is_taken_back_counts_for_nobody)
{
	struct outcome outcome = { .fate = FATE_RETRY,
		.sign = SIGN_FAILURE,
		.made = true,
		.unresolved = true,
		.retry_after_ms = -1,
		.text = "no route" };

	outcome_take_back(&outcome, arena, 60000);
	cr_expect_eq(outcome.fate, FATE_RETRY);
	cr_expect_eq(outcome.sign, SIGN_NOTHING);
	cr_expect(!outcome.made && !outcome.unresolved);
	cr_expect_eq(outcome.retry_after_ms, 60000);
	cr_expect_str_eq(outcome_class(&outcome), "no_answer");
	cr_expect_str_eq(
	    outcome.text, "our own network seems to be down: no route");
}

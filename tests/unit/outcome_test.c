#include <criterion/criterion.h>

#include "common/fediverse/outcome.h"

struct expected {
	int code;
	enum outcome_fate fate;
	enum outcome_sign sign;
	const char *class;
};

/* The contract's table. */
/* clang-format off */
static const struct expected expected[] = {
	{ 200, FATE_DELIVERED, SIGN_ALIVE,   "delivered" },
	{ 202, FATE_DELIVERED, SIGN_ALIVE,   "delivered" },
	{ 204, FATE_DELIVERED, SIGN_ALIVE,   "delivered" },
	{ 303, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 304, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 400, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 401, FATE_RETRY,     SIGN_ALIVE,   "unauthorized" },
	{ 403, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 404, FATE_FAILED,    SIGN_ALIVE,   "gone" },
	{ 405, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 406, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 408, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 410, FATE_FAILED,    SIGN_ALIVE,   "gone" },
	{ 413, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 418, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 422, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 425, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 429, FATE_RETRY,     SIGN_ALIVE,   "too_many" },
	{ 451, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 500, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 501, FATE_FAILED,    SIGN_ALIVE,   "refused" },
	{ 502, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 503, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 504, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 521, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 599, FATE_RETRY,     SIGN_FAILURE, "server_error" },
	{ 777, FATE_RETRY,     SIGN_FAILURE, "server_error" },
};
/* clang-format on */

Test(outcome, each_status_means_what_the_contract_says)
{
	for (size_t i = 0; i < COUNT(expected); i++) {
		struct outcome outcome =
		    outcome_of_status(expected[i].code, false);

		cr_expect_eq(
		    outcome.fate, expected[i].fate, "%d", expected[i].code);
		cr_expect_eq(
		    outcome.sign, expected[i].sign, "%d", expected[i].code);
		cr_expect_str_eq(outcome_class(&outcome), expected[i].class,
		    "%d", expected[i].code);
		cr_expect(outcome.made);
	}
}

Test(outcome, gone_is_an_inbox_or_a_whole_server)
{
	struct outcome personal = outcome_of_status(410, false);
	struct outcome shared = outcome_of_status(410, true);

	cr_expect(personal.inbox_gone && !personal.domain_gone);
	cr_expect(!shared.inbox_gone && shared.domain_gone);
	cr_expect(outcome_of_status(404, false).inbox_gone);
	cr_expect_not(outcome_of_status(404, true).inbox_gone);
	cr_expect_not(outcome_of_status(404, true).domain_gone);
}

Test(outcome, text_is_short_and_printable)
{
	struct arena *arena = arena_new();
	char body[4096];
	const char *text;

	memset(body, 'a', sizeof(body));
	memcpy(body, "no\r\n\x1b[31m\xc3\xa9", 11);
	text = outcome_text(arena, 400, (struct bytes){ body, sizeof(body) });
	cr_expect_eq(strncmp(text, "400: no   [31m  a", 17), 0, "%s", text);
	cr_expect_leq(strlen(text), 1024 + 1);
	cr_expect_str_eq(
	    outcome_text(arena, 503, (struct bytes){ "", 0 }), "503");
	arena_free(&arena);
}

#include <criterion/criterion.h>

#include "common/base/err.h"

Test(err, set_and_refuse_return_false_and_say_why)
{
	struct err err = { .retry_after_s = 9 };

	cr_expect_not(err_set(&err, ERR_ABSENT, "no message %d", 7));
	cr_expect_eq(err.code, ERR_ABSENT);
	cr_expect_str_eq(err.text, "no message 7");
	cr_expect_eq(err.retry_after_s, 0, "nothing of the old error is left");
	cr_expect_str_eq(err_reason(&err), "unknown_message");
	cr_expect_not(
	    err_refuse(&err, ERR_ABSENT, "channel_not_found", "no channel"));
	cr_expect_str_eq(err_reason(&err), "channel_not_found");
}

Test(err, a_long_text_is_cut)
{
	struct err err = { 0 };
	char text[1000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	err_set(&err, ERR_BUG, "%s", text);
	cr_expect_eq(strlen(err.text), sizeof(err.text) - 1);
}

Test(err, a_text_may_contain_the_old_one)
{
	struct err err = { 0 };

	err_set(&err, ERR_INVALID, "inner");
	err_set(&err, ERR_INVALID, "outer: %s", err.text);
	cr_expect_str_eq(err.text, "outer: inner");
}

Test(err, every_code_means_something_to_everybody)
{
	/* clang-format off */
	static const struct {
		enum err_code code;
		int http;
		const char *relay;
		enum err_sender sender;
	} rows[] = {
		{ ERR_INVALID,         400, "missing_message_payload", GIVE_UP },
		{ ERR_UNAUTHORIZED,    401, "unauthorized_source",     GIVE_UP },
		{ ERR_FORBIDDEN,       403, "unauthorized_source",     GIVE_UP },
		{ ERR_ATTRIBUTION,     403, "attribution_mismatch",    GIVE_UP },
		{ ERR_ABSENT,          404, "unknown_message",         TRY_LATER },
		{ ERR_DUPLICATE,       409, "duplicate",               GIVE_UP },
		{ ERR_CONFLICT,        409, "duplicate",               GIVE_UP },
		{ ERR_TOO_LARGE,       413, "missing_message_payload", GIVE_UP },
		{ ERR_MEDIA_TYPE,      415, "missing_message_payload", GIVE_UP },
		{ ERR_GONE,            410, "unknown_message",         GIVE_UP },
		{ ERR_TOO_MANY,        429, "processing_error",        TRY_LATER },
		{ ERR_BUSY,            503, "processing_error",        TRY_LATER },
		{ ERR_GATEWAY,         502, "processing_error",        TRY_LATER },
		{ ERR_GATEWAY_TIMEOUT, 504, "processing_error",        TRY_LATER },
		{ ERR_BUG,             500, "processing_error",        TRY_LATER },
	};
	/* clang-format on */

	cr_assert_eq(COUNT(rows), ERR_CODES - 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct err_rule *rule = &err_rules[rows[i].code];

		cr_expect_eq(rule->http, rows[i].http);
		cr_expect_str_eq(rule->relay, rows[i].relay);
		cr_expect_eq(rule->sender, rows[i].sender);
	}
}

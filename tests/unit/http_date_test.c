#include <criterion/criterion.h>

#include "common/net/http_date.h"

Test(http_date, is_written_and_read)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} cases[] = {
		{ 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" },
		{ 1767225600, "Thu, 01 Jan 2026 00:00:00 GMT" },
		{ 1709164800, "Thu, 29 Feb 2024 00:00:00 GMT" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[HTTP_DATE_MAX];
		int64_t seconds = -1;

		http_date_text(cases[i].seconds, text);
		cr_expect_str_eq(text, cases[i].text);
		cr_expect(http_date_read(cases[i].text, &seconds));
		cr_expect_eq(seconds, cases[i].seconds);
	}
}

Test(http_date, anything_else_is_none)
{
	static const char *const bad[] = { "", "yesterday",
		"Fri, 01 Jan 2026 00:00:00 GMT", /* it was a Thursday */
		"Thu, 01 Jan 2026 00:00:00 UTC", "Thu, 1 Jan 2026 00:00:00 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
		"Sat, 30 Feb 2026 00:00:00 GMT",
		"Thu, 01 jan 2026 00:00:00 GMT",
		"Thu, 01 Jan 2026 24:00:00 GMT",
		"Thu, 01 Jan 2026 00:00:00 GMT " };
	int64_t seconds;

	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_not(http_date_read(bad[i], &seconds), "%s", bad[i]);
}

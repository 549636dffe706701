#include <time.h>

#include "common/net/http_date.h"

enum { DATE_LEN = 29, DAY_LEN = 3, MONTH_AT = 8, YEAR_AT = 12 };

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void http_date_text(int64_t seconds, char text[HTTP_DATE_MAX])
{
	time_t when = (time_t)seconds;
	struct tm tm;

	gmtime_r(&when, &tm);
	snprintf(text, HTTP_DATE_MAX, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
	    days + tm.tm_wday * 3L, tm.tm_mday, months + tm.tm_mon * 3L,
	    tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static int digits(const char *text, int count)
{
	int number = 0;

	for (int i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		number = number * 10 + (text[i] - '0');
	}
	return number;
}

static int place(const char *names, const char *name)
{
	for (int i = 0; names[i * DAY_LEN]; i++)
		if (strncmp(names + i * (ptrdiff_t)DAY_LEN, name, DAY_LEN) == 0)
			return i;
	return -1;
}

/* What was read is written again: only a real date comes out the same. */
bool http_date_read(const char *text, int64_t *seconds)
{
	char again[HTTP_DATE_MAX];
	struct tm tm = { .tm_mday = 0 };
	int64_t read;

	if (strlen(text) != DATE_LEN)
		return false;
	tm.tm_mday = digits(text + 5, 2);
	tm.tm_mon = place(months, text + MONTH_AT);
	tm.tm_year = digits(text + YEAR_AT, 4) - 1900;
	tm.tm_hour = digits(text + 17, 2);
	tm.tm_min = digits(text + 20, 2);
	tm.tm_sec = digits(text + 23, 2);
	if (tm.tm_mday < 0 || tm.tm_mon < 0 || tm.tm_year < 0 ||
	    tm.tm_hour < 0 || tm.tm_min < 0 || tm.tm_sec < 0)
		return false;
	read = timegm(&tm);
	http_date_text(read, again);
	if (strcmp(again, text) != 0)
		return false;
	*seconds = read;
	return true;
}

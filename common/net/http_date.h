/*
 * http_date -- times as headers write them: "Thu, 01 Jan 2026 00:00:00 GMT".
 *
 * Reading takes this form only, whatever the locale, and is strict. Any thread.
 */
#ifndef POSTRIDER_HTTP_DATE_H
#define POSTRIDER_HTTP_DATE_H

#include "common/base/arena.h"

enum { HTTP_DATE_MAX = 32 };

void http_date_text(int64_t seconds, char text[HTTP_DATE_MAX]);
MUST_CHECK bool http_date_read(const char *text, int64_t *seconds);

#endif

/*
 * err -- what went wrong, once, with what it means to everybody.
 *
 * A function that can fail returns bool, takes struct err last and leaves its
 * outputs untouched on failure. The table says what a code means as an HTTP
 * status, as a word in a relay answer, to a sender and to the log. A call site
 * may name a more exact relay word (err_refuse).
 *
 * text is one fact in lower case or a documented sentence of the client API,
 * without secrets. It is shown to the caller for codes below ERR_BUSY.
 */
#ifndef POSTRIDER_ERR_H
#define POSTRIDER_ERR_H

#include "common/base/base.h"
#include "common/base/log.h"

enum err_code {
	ERR_NONE,
	ERR_INVALID,
	ERR_UNAUTHORIZED,
	ERR_FORBIDDEN,
	ERR_ATTRIBUTION,
	ERR_ABSENT,
	ERR_DUPLICATE,
	ERR_CONFLICT,
	ERR_TOO_LARGE,
	ERR_MEDIA_TYPE,
	ERR_GONE,
	ERR_TOO_MANY,
	ERR_BUSY,
	ERR_GATEWAY,
	ERR_GATEWAY_TIMEOUT,
	ERR_BUG,
	ERR_CODES
};

enum err_sender { GIVE_UP, TRY_LATER };

struct err {
	enum err_code code;
	const char *reason;    /* exact relay word, static; NULL: the table's */
	const char *http_code; /* static, for the "code" member, or NULL */
	int retry_after_s;
	char text[240];
};

struct err_rule {
	int http;
	const char *relay;
	enum err_sender sender;
	enum log_level level;
};

extern const struct err_rule err_rules[ERR_CODES];

/* Both set the error and return false, so that a caller can return them. */
bool err_set(struct err *err, enum err_code code, const char *format, ...)
    PRINTF(3, 4);
bool err_refuse(struct err *err, enum err_code code, const char *reason,
    const char *format, ...) PRINTF(4, 5);

/* The relay word: the exact one or the table's. */
const char *err_reason(const struct err *err);

#endif

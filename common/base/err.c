#include <stdarg.h>

#include "common/base/err.h"

/* clang-format off */
const struct err_rule err_rules[ERR_CODES] = {
	/*                        HTTP  relay reason               sender     level */
	[ERR_NONE]            = { 200, "",                        GIVE_UP,   LOG_DEBUG },
	[ERR_INVALID]         = { 400, "missing_message_payload", GIVE_UP,   LOG_INFO  },
	[ERR_UNAUTHORIZED]    = { 401, "unauthorized_source",     GIVE_UP,   LOG_INFO  },
	[ERR_FORBIDDEN]       = { 403, "unauthorized_source",     GIVE_UP,   LOG_INFO  },
	[ERR_ATTRIBUTION]     = { 403, "attribution_mismatch",    GIVE_UP,   LOG_WARN  },
	[ERR_ABSENT]          = { 404, "unknown_message",         TRY_LATER, LOG_INFO  },
	[ERR_DUPLICATE]       = { 409, "duplicate",               GIVE_UP,   LOG_DEBUG },
	[ERR_CONFLICT]        = { 409, "duplicate",               GIVE_UP,   LOG_INFO  },
	[ERR_TOO_LARGE]       = { 413, "missing_message_payload", GIVE_UP,   LOG_INFO  },
	[ERR_MEDIA_TYPE]      = { 415, "missing_message_payload", GIVE_UP,   LOG_INFO  },
	[ERR_GONE]            = { 410, "unknown_message",         GIVE_UP,   LOG_INFO  },
	[ERR_TOO_MANY]        = { 429, "processing_error",        TRY_LATER, LOG_INFO  },
	[ERR_BUSY]            = { 503, "processing_error",        TRY_LATER, LOG_WARN  },
	[ERR_GATEWAY]         = { 502, "processing_error",        TRY_LATER, LOG_WARN  },
	[ERR_GATEWAY_TIMEOUT] = { 504, "processing_error",        TRY_LATER, LOG_WARN  },
	[ERR_BUG]             = { 500, "processing_error",        TRY_LATER, LOG_ERROR },
};
/* clang-format on */

PRINTF(4, 0)
static void fill(struct err *err, enum err_code code, const char *reason,
    const char *format, va_list args)
{
	char text[sizeof(err->text)];

	/* The arguments may be the text of this very error. */
	vsnprintf(text, sizeof(text), format, args);
	*err = (struct err){ .code = code, .reason = reason };
	memcpy(err->text, text, strlen(text) + 1);
}

bool err_set(struct err *err, enum err_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(err, code, NULL, format, args);
	va_end(args);
	return false;
}

bool err_refuse(struct err *err, enum err_code code, const char *reason,
    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(err, code, reason, format, args);
	va_end(args);
	return false;
}

const char *err_reason(const struct err *err)
{
	assert(err->code < ERR_CODES);
	return err->reason ? err->reason : err_rules[err->code].relay;
}

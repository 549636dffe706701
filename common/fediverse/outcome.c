#include "common/fediverse/outcome.h"

#include "common/base/buf.h"

enum { TEXT_MAX = 1024 };

struct rule {
	int from, to;
	enum outcome_fate fate;
	enum outcome_sign sign;
};

/* The first that fits. */
/* clang-format off */
static const struct rule rules[] = {
	{ 200, 299, FATE_DELIVERED, SIGN_ALIVE },
	{ 300, 399, FATE_FAILED,    SIGN_ALIVE }, /* followed as far as we do */
	{ 401, 401, FATE_RETRY,     SIGN_ALIVE }, /* it may not have our key */
	{ 408, 408, FATE_RETRY,     SIGN_FAILURE },
	{ 425, 425, FATE_RETRY,     SIGN_FAILURE },
	{ 429, 429, FATE_RETRY,     SIGN_ALIVE },
	{ 400, 499, FATE_FAILED,    SIGN_ALIVE },
	{ 501, 501, FATE_FAILED,    SIGN_ALIVE },
	{ 500, 599, FATE_RETRY,     SIGN_FAILURE },
};
/* clang-format on */

static const struct rule unknown = { 0, 0, FATE_RETRY, SIGN_FAILURE };

static const struct rule *rule_of(int code)
{
	for (size_t i = 0; i < COUNT(rules); i++)
		if (code >= rules[i].from && code <= rules[i].to)
			return &rules[i];
	return &unknown;
}

struct outcome outcome_of_status(int code, bool shared)
{
	const struct rule *rule = rule_of(code);

	return (struct outcome){
		.fate = rule->fate,
		.sign = rule->sign,
		.made = true,
		.code = code,
		.inbox_gone = (code == 404 || code == 410) && !shared,
		.domain_gone = code == 410 && shared,
		.unauthorized = code == 401,
		.retry_after_ms = -1,
	};
}

void outcome_take_back(
    struct outcome *outcome, struct arena *arena, int64_t wait_ms)
{
	*outcome = (struct outcome){
		.fate = FATE_RETRY,
		.sign = SIGN_NOTHING,
		.uncounted = true,
		.retry_after_ms = wait_ms,
		.text = arena_printf(arena,
		    "our own network seems to be down: %s", outcome->text),
	};
}

const char *outcome_class(const struct outcome *outcome)
{
	if (outcome->fate == FATE_DELIVERED)
		return "delivered";
	if (!outcome->made && !outcome->uncounted)
		return "not_sent";
	if (outcome->inbox_gone || outcome->domain_gone)
		return "gone";
	if (outcome->fate == FATE_FAILED)
		return "refused";
	if (outcome->unauthorized)
		return "unauthorized";
	if (outcome->code == 429)
		return "too_many";
	return outcome->code ? "server_error" : "no_answer";
}

const char *outcome_text(struct arena *arena, int code, struct bytes body)
{
	const char *data = body.data;
	struct buf text;

	buf_init(&text, arena, TEXT_MAX + 16);
	buf_text(&text, "");
	if (code)
		buf_printf(&text, "%d%s", code, body.len ? ": " : "");
	for (size_t i = 0; i < body.len && text.len < TEXT_MAX; i++) {
		/* Only ASCII: a cut would leave half a character. */
		buf_char(
		    &text, data[i] >= ' ' && data[i] < 0x7f ? data[i] : ' ');
	}
	return text.data;
}

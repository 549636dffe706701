#include <errno.h>

#include "common/base/conf_keys.h"

#define CONF conf_common

/* clang-format off */
const struct conf_key conf_common_keys[] = {
	KEY(TEXT, origin, "", NULL, NULL, BOOT,
		"Scheme, host and port under which this node is reached."),
	KEY(TEXT, database, "dbname=postrider", NULL, NULL, BOOT,
		"Connection string of libpq."),
	KEY(TEXT, node_key_file, "", NULL, NULL, BOOT,
		"File with the key that seals secrets in the database."),
	KEY(TEXT, metrics_listen, "", NULL, NULL, BOOT,
		"Address and port for metrics; empty: none."),
	KEY(TEXT, log_level, "info", "debug info warn error", NULL, LIVE,
		"Least level that is logged."),
	KEY(TEXT, instance, "", NULL, NULL, BOOT,
		"Name of this process in logs, when several run."),
	KEY(INT, workers, "4", "1", "256", BOOT,
		"Worker threads, each with a database connection."),
	KEY(SPAN, stop_grace, "20s", "0", "10min", LIVE,
		"How long work in progress may take after SIGTERM."),
	KEY(TEXT, ca_file, "", NULL, NULL, BOOT,
		"Certificates to trust; empty: the system's."),
	KEY(TEXT, resolve, "", NULL, NULL, BOOT,
		"host=address pairs that replace name resolution (development)."),
	KEY(BOOL, allow_private_addresses, "off", NULL, NULL, BOOT,
		"Connect to peers on private addresses too (development)."),
	{ 0 },
};
/* clang-format on */

const char *const conf_all_names[] = {
	"activities_max",
	"allow_private_addresses",
	"answer_timeout",
	"body_deadline",
	"body_rate",
	"ca_file",
	"connections_max",
	"connections_per_address_max",
	"database",
	"dead_letters_kept",
	"events_kept",
	"handshake_deadline",
	"head_deadline",
	"idle_deadline",
	"instance",
	"listen",
	"log_level",
	"metrics_listen",
	"node_key_file",
	"origin",
	"password_memory",
	"password_ops",
	"password_slots",
	"peers_max",
	"probes_max",
	"rate_general",
	"rate_limits",
	"requests_per_connection_max",
	"resolve",
	"spool_above",
	"spool_dir",
	"stop_grace",
	"sweep_every",
	"tls_certificate",
	"tls_key",
	"token_lifetime",
	"trusted_proxies",
	"webhook_secret_file",
	"workers",
	"write_deadline",
	NULL,
};

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit spans[] = { { "ms", 1 }, { "s", 1000 },
	{ "min", 60 * 1000 }, { "h", 3600 * 1000 }, { "d", 86400 * 1000 },
	{ NULL, 0 } };

static const struct unit sizes[] = { { "", 1 }, { "B", 1 }, { "kB", 1 << 10 },
	{ "MB", 1 << 20 }, { "GB", 1 << 30 }, { NULL, 0 } };

static const struct unit plain[] = { { "", 1 }, { NULL, 0 } };

static bool parse_number(
    const char *text, const struct unit *units, int64_t *number)
{
	char *rest;
	int64_t count;

	errno = 0;
	count = strtoll(text, &rest, 10);
	if (rest == text || errno || strchr(" \t+", text[0]))
		return false;
	while (*rest == ' ')
		rest++;
	for (; units->name; units++)
		if (strcmp(rest, units->name) == 0)
			return !__builtin_mul_overflow(
			    count, units->factor, number);
	/* Nothing is nothing in every unit. */
	*number = 0;
	return count == 0 && !*rest;
}

static bool parse_kind(
    enum conf_kind kind, const char *text, struct conf_value *value)
{
	switch (kind) {
	case CONF_TEXT:
		value->text = text;
		return true;
	case CONF_SPAN:
		return parse_number(text, spans, &value->number);
	case CONF_SIZE:
		return parse_number(text, sizes, &value->number);
	case CONF_INT:
		return parse_number(text, plain, &value->number);
	case CONF_BOOL:
		value->flag = strcmp(text, "on") == 0;
		return value->flag || strcmp(text, "off") == 0;
	case CONF_END:
		break;
	}
	return false;
}

static const char *kind_words(enum conf_kind kind)
{
	switch (kind) {
	case CONF_SPAN:
		return "a time such as 30s (ms, s, min, h, d)";
	case CONF_SIZE:
		return "a size such as 10MB (kB, MB, GB)";
	case CONF_INT:
		return "a whole number";
	case CONF_BOOL:
		return "on or off";
	case CONF_TEXT:
	case CONF_END:
		break;
	}
	return "a text";
}

/* -1 below the bounds, 1 above, 0 within; bounds of the table are valid. */
static int out_of_bounds(const struct conf_key *key, int64_t number)
{
	struct conf_value bound = { 0 };

	if (key->min && parse_kind(key->kind, key->min, &bound) &&
	    number < bound.number)
		return -1;
	if (key->max && parse_kind(key->kind, key->max, &bound) &&
	    number > bound.number)
		return 1;
	return 0;
}

/* Is text one of the words in list, which a space parts? */
static bool is_listed(const char *list, const char *text)
{
	size_t len = strlen(text);

	for (const char *p = list; (p = strstr(p, text)) != NULL; p++)
		if (len && (p == list || p[-1] == ' ') &&
		    (p[len] == ' ' || !p[len]))
			return true;
	return false;
}

bool conf_value_parse(const struct conf_key *key, const char *text,
    struct conf_value *value, struct err *err)
{
	struct conf_value parsed = { 0 };
	int side;

	if (!parse_kind(key->kind, text, &parsed))
		return err_set(err, ERR_INVALID, "%s must be %s", key->name,
		    kind_words(key->kind));
	if (key->kind == CONF_TEXT && key->min && !is_listed(key->min, text))
		return err_set(err, ERR_INVALID, "%s must be one of: %s",
		    key->name, key->min);
	side = key->kind == CONF_TEXT ? 0 : out_of_bounds(key, parsed.number);
	if (side)
		return err_set(err, ERR_INVALID, "%s must be at %s %s",
		    key->name, side < 0 ? "least" : "most",
		    side < 0 ? key->min : key->max);
	*value = parsed;
	return true;
}

bool conf_is_name(const char *name)
{
	for (const char *const *known = conf_all_names; *known; known++)
		if (strcmp(*known, name) == 0)
			return true;
	return false;
}

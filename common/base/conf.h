/*
 * conf -- one table a daemon drives file, environment, help and checks.
 *
 * Order, later wins: defaults, FILE, conf.d/ *.conf beside it in name order,
 * environment POSTRIDER_<KEY>. A file line is "key = value"; # begins a
 * comment; several daemons share one file, so a key that another daemon knows
 * is skipped and a key that none knows is an error. Defaults and bounds are
 * written as an operator writes them and go through the same parser. A reload
 * reads everything and applies all or nothing; changed BOOT keys are named in
 * the log and stay as they were.
 *
 * TEXT: as is; min, if given, lists the words that are allowed. SPAN: 250ms 30s
 * 5min 2h 7d, kept in ms (int64_t). SIZE: bytes with optional kB MB GB (1024),
 * int64_t. INT: int64_t. BOOL: on/off, bool.
 */
#ifndef POSTRIDER_CONF_H
#define POSTRIDER_CONF_H

#include "common/base/buf.h"
#include "common/base/err.h"

enum conf_kind {
	CONF_END,
	CONF_TEXT,
	CONF_SPAN,
	CONF_SIZE,
	CONF_INT,
	CONF_BOOL
};
enum conf_when { BOOT, LIVE };

struct conf_key {
	enum conf_kind kind;
	const char *name;
	size_t offset; /* into the daemon's struct */
	const char *fallback;
	const char *min;
	const char *max;
	enum conf_when when;
	const char *help;
};

/* CONF is the tag of the daemon's settings struct, defined by its file. */
#define KEY(k, member, fallback, min, max, when, help) \
	{ \
		CONF_##k, #member, offsetof(struct CONF, member), fallback, \
		    min, max, when, help \
	}

/* Keys that every daemon has, at the head of its struct and its table. */
struct conf_common {
	const char *origin;
	const char *database;
	const char *node_key_file;
	const char *metrics_listen;
	const char *log_level;
	const char *instance;
	int64_t workers;
	int64_t stop_grace;
	const char *ca_file;
	const char *resolve;
	bool allow_private_addresses;
};
extern const struct conf_key conf_common_keys[];

/* Names that belong to other daemons and are skipped here. */
extern const char *const conf_all_names[];

/* settings must start with struct conf_common; keys end with CONF_END. */
MUST_CHECK bool conf_load(const struct conf_key *keys, void *settings,
    const char *file, struct err *err);
MUST_CHECK bool conf_reload(const struct conf_key *keys, void *settings,
    const char *file, struct err *err);

/* The table as manual text: key, default, bounds, when, sentence. */
void conf_help(const struct conf_key *keys, struct buf *out);

#endif

/*
 * ctl -- postrider-ctl: makes, migrates and checks a node's database.
 *
 * Every command gets what the arguments and the configuration said, prints to
 * stdout what it did and returns the program's exit status.
 */
#ifndef POSTRIDER_CTL_H
#define POSTRIDER_CTL_H

#include "common/base/conf.h"
#include "common/pg/sql.h"

struct ctl_conf {
	struct conf_common common;
};

struct ctl {
	struct arena *arena;
	struct ctl_conf conf;
	const char *config;   /* file; it need not exist for init */
	const char *database; /* conninfo */
	const char *schema_dir;
	const char *origin; /* --origin of init, or NULL */
	const char *to;	    /* --to, or NULL */
	bool config_read;
	bool dry_run;
	bool print_sql;
	int words; /* behind the options: command and its arguments */
	char **word;
};

int ctl_init(struct ctl *ctl);
int ctl_migrate(struct ctl *ctl);
int ctl_check(struct ctl *ctl);

/* A connection for one command; the conninfo must outlive it. */
struct conn *ctl_connect(const char *conninfo);

/* One line on stderr: what went wrong; returns exit status 1. */
int ctl_fail(const struct err *err);

#endif

/*
 * migrate -- numbered files, applied in order, each in a transaction.
 *
 * schema_migrations records what is applied, with the SHA-256 of the file. A
 * step takes the migration lock, looks again at what is applied, refuses when
 * an applied file has changed since, runs the file, records it and commits;
 * so two that migrate at once do each step once. Files are
 * NNNN_name.up.sql and NNNN_name.down.sql, numbered from 1 without a gap.
 */
#ifndef POSTRIDER_MIGRATE_H
#define POSTRIDER_MIGRATE_H

#include "common/pg/sql.h"

struct migrate {
	struct conn *conn;
	struct arena *arena;
	const char *dir;
	bool dry_run; /* report only */
	/* One line a step; NULL: silent. */
	void (*report)(void *arg, const char *line);
	void *arg;
};

struct migration {
	int64_t number;
	const char *name;
	const char *up;
	const char *down;
	const char *checksum; /* of up */
	int64_t applied_at;   /* 0: not applied */
	const char *applied_checksum;
};

/* Applies what is missing up to number to; 0: all. */
MUST_CHECK bool migrate_up(
    const struct migrate *migrate, int64_t to, struct err *err);

/* Takes back what is applied above number to; 0 leaves nothing behind. */
MUST_CHECK bool migrate_down(
    const struct migrate *migrate, int64_t to, struct err *err);

/* Rows of struct migration: the files, with what the database says of them.
 * newest is the highest number that is applied. */
MUST_CHECK bool migrate_status(const struct migrate *migrate, struct rows *rows,
    int64_t *newest, struct err *err);

#endif

/*
 * database -- is it there, does its schema fit, does it answer.
 *
 * A thread and a connection of its own ask every few seconds, so that a
 * stalled or absent database is known whatever the workers wait for. fits is
 * called once, at the first answer with the right schema. A schema that does
 * not fit before that ends the process with one line: no waiting helps.
 *
 * Loop thread only.
 */
#ifndef POSTRIDER_DATABASE_H
#define POSTRIDER_DATABASE_H

#include "common/base/loop.h"

struct database;

struct database_def {
	const char *conninfo;
	const char *application;
	void (*fits)(void *arg);
	void *arg;
};

struct database *database_new(
    struct loop *loop, const struct database_def *def);
void database_free(struct database **database);

/* It answered lately, or is known to be away or not to answer. */
bool database_is_known(const struct database *database);
bool database_answers(const struct database *database);

#endif

/*
 * schema -- does the database fit this program?
 *
 * Compares the migrations recorded in the database with the number this build
 * needs. Too old, too new or none: ERR_CONFLICT with a text that says which
 * is needed and which is there. ERR_BUSY while the database is away.
 */
#ifndef POSTRIDER_SCHEMA_H
#define POSTRIDER_SCHEMA_H

#include "common/pg/sql.h"

/* The migration this build was written for. */
extern const int schema_needed;

MUST_CHECK bool schema_check(struct tx *tx, struct err *err);

#endif

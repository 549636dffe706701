/*
 * typing -- who is writing just now, for the connections of this node.
 *
 * Nothing is kept: it is a signal after the commit (postrider_ephemeral)
 *
 *     {"kind":"dm_typing","conversation":"<id>","user":"<id>","username":"x"}
 *     {"kind":"dm_typing_stop","conversation":"<id>","user":"<id>"}
 *
 * A message of the person ends it as well, without a signal of its own.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_TYPING_H
#define POSTRIDER_TYPING_H

#include "common/pg/sql.h"

void typing_signal(struct tx *tx, int64_t conversation, int64_t person,
    const char *username, bool starts);

#endif

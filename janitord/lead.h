/*
 * lead -- which janitord leads.
 *
 * The leader holds a session advisory lock on a connection of its own, which
 * the server lets go when the process or its host dies. Whoever does not hold
 * it asks every second and never waits. Who has lost it knows within a second
 * too; until then two may lead, and every statement of janitord is made so
 * that this does no harm.
 *
 * Loop thread.
 */
#ifndef POSTRIDER_LEAD_H
#define POSTRIDER_LEAD_H

#include "common/base/loop.h"

struct lead;

struct lead_def {
	struct loop *loop;
	const char *application;
	void (*changed)(void *arg, bool leads);
	void *arg;
};

/* Begins to ask at once. */
struct lead *lead_new(const struct lead_def *def);
/* Lets go of the lock. */
void lead_free(struct lead **lead);

/* As far as we know. */
bool lead_is_ours(const struct lead *lead);

#endif

/*
 * converge -- whatever people do on two or three nodes, all of them end with
 * the same state.
 *
 * Everybody does everything that the client API offers for conversations,
 * groups, reactions, friends, read states and profiles, drawn from the seed,
 * while the faults of `mixed` go on. Actions need not succeed: somebody who is
 * refused, or gets no answer, goes on. At rest what the nodes hold is compared.
 */
#ifndef POSTRIDER_CHAOS_CONVERGE_H
#define POSTRIDER_CHAOS_CONVERGE_H

#include "tests/chaos/site.h"

/* False: nodes differ, something never drained, or an answer was a 500. */
MUST_CHECK bool converge_run(struct site *site, const struct options *options);

#endif

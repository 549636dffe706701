/*
 * relay_others -- what 48 peers notice of one that is dead, with 100,000
 * entries waiting, and of one that takes 25 seconds to answer: time from an
 * insert to its POST, next to the same without those two.
 */
#ifndef POSTRIDER_RELAY_OTHERS_H
#define POSTRIDER_RELAY_OTHERS_H

#include "tests/bench/relay_site.h"

/* Leaves two peers elsewhere: the last figure of those that drain. */
void figure_others(struct bench *bench);

#endif

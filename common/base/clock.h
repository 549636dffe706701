/*
 * clock -- the two clocks, injectable.
 *
 * Wall time is Unix milliseconds and may jump; steady time only measures
 * distances. Tests set both. Any thread.
 */
#ifndef POSTRIDER_CLOCK_H
#define POSTRIDER_CLOCK_H

#include "common/base/base.h"

int64_t clock_wall_ms(void);
int64_t clock_steady_ms(void);
int64_t clock_steady_us(void);

/* Adds to both clocks (tests). */
void clock_shift_ms(int64_t ms);

#endif

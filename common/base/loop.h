/*
 * loop -- one libevent loop a process: sockets, timers, signals.
 *
 * The loop thread owns them and runs no query, reads no file, never blocks.
 * loop_call is the only function that another thread may use.
 */
#ifndef POSTRIDER_LOOP_H
#define POSTRIDER_LOOP_H

#include "common/base/base.h"

struct loop;
struct loop_timer;
struct event_base;

struct loop *loop_new(void);
/* Runs what loop_call and loop_after_turn still hold. */
void loop_free(struct loop **loop);

/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* For net and pg, which watch sockets with libevent themselves. */
struct event_base *loop_base(struct loop *loop);

/* A timer that is armed, re-armed and disarmed by its owner. */
struct loop_timer *loop_timer_new(
    struct loop *loop, void (*call)(void *arg), void *arg);
void loop_timer_arm(struct loop_timer *timer, int64_t ms);
void loop_timer_disarm(struct loop_timer *timer);
void loop_timer_free(struct loop_timer **timer);

/* call(arg) on the loop thread whenever the signal arrives. */
void loop_signal(
    struct loop *loop, int number, void (*call)(void *arg), void *arg);

/* Any thread: run call(arg) on the loop thread soon, in order. */
void loop_call(struct loop *loop, void (*call)(void *arg), void *arg);

/* Run call(arg) when this turn is over: what a callback may not free itself. */
void loop_after_turn(struct loop *loop, void (*call)(void *arg), void *arg);

/* How late the loop ran its last tick, for the lag metric and the watchdog. */
int64_t loop_lag_us(const struct loop *loop);

#endif

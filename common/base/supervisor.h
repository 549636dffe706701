/*
 * supervisor -- what systemd and a daemon tell each other, by hand.
 *
 * Datagrams to NOTIFY_SOCKET, the watchdog's period, inherited sockets.
 * Without a supervisor all of it does nothing.
 *
 * Internal to daemon.
 */
#ifndef POSTRIDER_SUPERVISOR_H
#define POSTRIDER_SUPERVISOR_H

#include "common/base/base.h"

/* Lines such as READY=1. A supervisor that is busy is waited for, a second at
 * most. */
void supervisor_tell(const char *text);
/* What is said again anyhow: nobody waits for it to be heard. */
void supervisor_mention(const char *text);

/* How often the watchdog wants to hear from us; 0: never. */
int64_t supervisor_watchdog_ms(void);

/* Sockets from fd 3 on. */
int supervisor_sockets(void);

#endif

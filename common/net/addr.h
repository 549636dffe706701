/*
 * addr -- addresses: which may be connected to, and how clients are counted.
 */
#ifndef POSTRIDER_ADDR_H
#define POSTRIDER_ADDR_H

#include "common/base/arena.h"

struct sockaddr;

/* Global unicast only; every private, loopback, link-local, multicast,
 * mapped, translated (6to4, NAT64, Teredo) or reserved range is not. */
bool addr_is_public(const struct sockaddr *addr);
bool addr_is_loopback(const struct sockaddr *addr);

/* "192.0.2.7", "2001:db8::1"; mapped IPv4 is shown as IPv4. */
const char *addr_text(struct arena *arena, const struct sockaddr *addr);

/* Do the name servers say that there is no such name? False when they say
 * nothing. Blocks: worker threads only. */
bool addr_name_is_absent(const char *name);

/* The key rate limits count by: IPv4 whole, IPv6 its /64. */
const char *addr_limit_key(struct arena *arena, const char *text);

/* trusted: comma list of addresses and networks ("127.0.0.1, 10.0.0.0/8"). */
bool addr_in_list(const char *text, const char *trusted);

/* The client of a request: peer, or, when peer is trusted, the right-most
 * untrusted entry of X-Forwarded-For. */
const char *addr_client(struct arena *arena, const char *peer,
    const char *forwarded_for, const char *trusted);

#endif

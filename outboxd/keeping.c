#include <utlist.h>

#include "outboxd/delivery.h"
#include "outboxd/renewal.h"

static void renewed(struct delivery *d, const struct renewal *renewal)
{
	enum renewal_word word = renewal_of(renewal, d->token);

	if (word == RENEWAL_SILENT)
		return;
	if (word == RENEWAL_LOST) {
		delivery_lose(d);
		return;
	}
	d->lease_ends = renewal_until(renewal);
	if (word == RENEWAL_LEAVE) {
		d->leave = true;
		delivery_nudge(d);
	}
}

static void told(void *owner, const struct renewal *renewal)
{
	struct deliverer *all = owner;
	struct delivery *d;
	struct delivery *next;

	all->pending--;
	all->renewing = false;
	DL_FOREACH_SAFE(all->deliveries, d, next)
	renewed(d, renewal);
	if (all->renew_again)
		deliver_recheck(all);
}

void deliverer_renew(struct deliverer *all)
{
	struct renewal *renewal;
	struct delivery *d;

	all->renew_again = all->renewing;
	if (all->renewing || all->held == 0)
		return;
	renewal = renewal_new(LEASE_PEERS, all->held);
	DL_FOREACH(all->deliveries, d)
	renewal_add_id(renewal, d->peer, d->token);
	if (!renewal_begin(renewal, all->def.pool, told, all))
		return;
	all->renewing = true;
	all->pending++;
}

void deliver_recheck(struct deliverer *all)
{
	struct delivery *d;

	DL_FOREACH(all->deliveries, d)
	d->fresh_secret = true;
	deliverer_renew(all);
}

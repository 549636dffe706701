#include <utlist.h>

#include "outboxd/fediverse_parts.h"
#include "outboxd/renewal.h"

static void told(void *owner, const struct renewal *renewal)
{
	struct fediverse *all = owner;
	struct fediverse_domain *d;
	struct fediverse_domain *next;

	all->pending--;
	all->renewing = false;
	DL_FOREACH_SAFE(all->domains, d, next)
	switch (renewal_of(renewal, d->lease.token)) {
	case RENEWAL_SILENT:
		break;
	case RENEWAL_KEPT:
	case RENEWAL_LEAVE:
		d->lease_ends = renewal_until(renewal);
		break;
	case RENEWAL_LOST:
		if (!d->releasing)
			fediverse_domain_lose(d);
	}
}

void fediverse_renew(struct fediverse *all)
{
	struct renewal *renewal;
	struct fediverse_domain *d;

	if (all->renewing || all->held == 0)
		return;
	renewal = renewal_new(LEASE_DOMAINS, all->held);
	DL_FOREACH(all->domains, d)
	renewal_add(renewal, d->lease.domain, d->lease.token);
	if (!renewal_begin(renewal, all->def.pool, told, all))
		return;
	all->renewing = true;
	all->pending++;
}

#include "common/fediverse/drain_one.h"

/* ---- the network, waited for ---- */

struct wait {
	struct loop *loop;
	struct delivery_try *attempt;
	const struct outbound_delivery *delivery;
	bool again;
};

static void on_answer(void *arg, const struct client_result *result)
{
	struct wait *wait = arg;

	wait->again = wait->delivery->answered(wait->attempt, result);
	loop_stop(wait->loop);
}

static bool hop_look(const struct drain_one *drain,
    struct delivery_try *attempt, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(drain->conn, drain->arena);

	return delivery_hop_look(attempt, tx, err) && tx_commit(tx, err);
}

static bool deliver(const struct drain_one *drain,
    const struct outbound_delivery *delivery, struct delivery_try *attempt,
    struct err *err)
{
	struct wait wait = { .attempt = attempt, .delivery = delivery };
	struct client *client = NULL;
	bool ok = true;

	if (!delivery->prepare(attempt))
		return true;
	wait.loop = loop_new();
	client = client_new(wait.loop, drain->client);
	do {
		client_send(client, &attempt->request, on_answer, &wait);
		loop_run(wait.loop);
		ok = !wait.again || hop_look(drain, attempt, err);
	} while (ok && wait.again && delivery->prepare(attempt));
	client_free(&client);
	loop_free(&wait.loop);
	return ok;
}

/* ---- a row ---- */

/* What one call holds. */
struct unit {
	const struct drain_one *drain;
	struct outbound_visit visit;
	struct outbound_item item;
	const struct outbound_delivery *delivery;
	struct pkey *key;
	bool found;
};

static void unit_end(struct unit *unit)
{
	pkey_free(&unit->key);
}

static bool lock(struct tx *tx, struct unit *unit, struct err *err)
{
	return outbound_lock(tx, &unit->visit, 1, err) &&
	    (unit->visit.held || err_set(err, ERR_BUSY, "the lease was lost"));
}

static bool read_row(struct tx *tx, struct unit *unit, struct err *err)
{
	const struct outbound_reading one = {
		.count = 1,
		.domains = (const char *[]){ unit->visit.lease.domain },
		.limits = (int64_t[]){ 1 },
		.more = (bool[]){ false },
	};
	struct rows items;

	if (!outbound_read(tx, &one, &items, err))
		return false;
	unit->found = items.count > 0 && unit->visit.domain.on;
	if (!unit->found)
		return outbound_release(tx, &unit->visit.lease, err);
	unit->item = *(const struct outbound_item *)items.items;
	return true;
}

/* A row without its key is none that can be sent; prepare says so. */
static bool choose(struct tx *tx, struct unit *unit, struct err *err)
{
	const char *name = unit->item.transport ? unit->item.transport
						: unit->visit.domain.transport;

	unit->delivery = unit->drain->delivery ? unit->drain->delivery
					       : outbound_delivery_find(name);
	return !unit->delivery || !unit->delivery->needs_key ||
	    delivery_key(tx, unit->drain->home, &unit->item, &unit->key, err);
}

static bool take(struct unit *unit, struct err *err)
{
	AUTO(tx_end)
	struct tx *tx = tx_new(unit->drain->conn, unit->drain->arena);
	struct rows leases;

	if (!outbound_claim_oldest(tx, 0, &leases, err))
		return false;
	if (leases.count == 0)
		return tx_commit(tx, err);
	unit->visit.lease = *(const struct outbound_lease *)leases.items;
	return lock(tx, unit, err) && read_row(tx, unit, err) &&
	    (!unit->found || choose(tx, unit, err)) && tx_commit(tx, err);
}

static bool settle(
    struct unit *unit, const struct delivery_try *attempt, struct err *err)
{
	AUTO(tx_end)
	struct tx *tx = tx_new(unit->drain->conn, unit->drain->arena);
	const struct outbound_result result = delivery_result(attempt);
	struct outbound_item after;

	unit->visit.results = &result;
	unit->visit.count = 1;
	if (!lock(tx, unit, err) ||
	    !outbound_settle(tx, &unit->visit, 1, err) ||
	    !outbound_release(tx, &unit->visit.lease, err) ||
	    !outbound_find(tx, unit->item.id, &after, err) ||
	    !tx_commit(tx, err))
		return false;
	unit->item = after;
	return true;
}

bool outbound_drain_one(const struct drain_one *drain, bool *found,
    struct outbound_item *item, struct err *err)
{
	AUTO(unit_end) struct unit unit = { .drain = drain };
	struct delivery_try attempt;

	if (!take(&unit, err))
		return false;
	if (unit.found) {
		delivery_begin(&attempt, drain->arena, drain->home, &unit.item);
		delivery_style(&attempt, &unit.visit.domain);
		attempt.key = unit.key;
		if (!unit.delivery)
			delivery_fail(&attempt, "no such transport");
		else if (!deliver(drain, unit.delivery, &attempt, err))
			return false;
		if (!settle(&unit, &attempt, err))
			return false;
		*item = unit.item;
	}
	*found = unit.found;
	return true;
}

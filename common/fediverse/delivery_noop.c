#include "common/fediverse/delivery.h"

/* Logs and counts as delivered: a queue can be tried without any network. */
static bool prepare(struct delivery_try *attempt)
{
	log_info("activity.noop", F("entry", v_text(attempt->item->id)),
	    F("peer", v_text(attempt->item->target_domain)));
	attempt->outcome = (struct outcome){
		.fate = FATE_DELIVERED,
		.sign = SIGN_NOTHING,
		.made = true,
		.retry_after_ms = -1,
	};
	return false;
}

static bool answered(struct delivery_try *attempt UNUSED,
    const struct client_result *result UNUSED)
{
	return false;
}

const struct outbound_delivery delivery_noop = {
	.name = "noop",
	.prepare = prepare,
	.answered = answered,
};

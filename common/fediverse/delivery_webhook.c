#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "common/fediverse/delivery.h"

/*
 * The receiver computes HMAC-SHA256 over the time stamp, a full stop and the
 * body under the shared secret, and compares; the stamp lets it refuse what is
 * old, the row's id what it has already had.
 */
static bool prepare(struct delivery_try *attempt)
{
	const char *payload = attempt->item->payload_json;
	const char *stamp =
	    arena_printf(attempt->arena, "%" PRId64, clock_wall_ms());
	char *signature = arena_alloc(attempt->arena, SIGN_TEXT_MAX);
	const char *secret = attempt->home->webhook_secret;
	struct origin origin;
	const char *path;
	size_t count = 0;

	if (!delivery_target(attempt, &origin, &path))
		return false;
	if (!secret)
		return delivery_fail(attempt, "webhook_secret_file is not set");
	sign_make(secret, stamp, NULL,
	    (struct bytes){ payload, strlen(payload) }, signature);
	attempt->headers[count++] =
	    (struct http_header){ "Content-Type", "application/json" };
	attempt->headers[count++] =
	    (struct http_header){ "X-Postrider-Delivery", attempt->item->id };
	attempt->headers[count++] =
	    (struct http_header){ "X-Postrider-Timestamp", stamp };
	attempt->headers[count++] =
	    (struct http_header){ "X-Postrider-Signature", signature };
	delivery_request(attempt, count);
	return true;
}

static bool answered(
    struct delivery_try *attempt, const struct client_result *result)
{
	if (result->head_status >= 300 && result->head_status <= 399)
		return delivery_redirect(attempt, result);
	delivery_conclude(attempt, result);
	return false;
}

const struct outbound_delivery delivery_webhook = {
	.name = "webhook",
	.prepare = prepare,
	.answered = answered,
};

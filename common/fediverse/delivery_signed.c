#include "common/base/clock.h"
#include "common/fediverse/actor.h"
#include "common/fediverse/delivery.h"

/* What is no inbox of a stranger: NULL, or why. */
static const char *refusal(
    const struct delivery_try *attempt, const struct origin *origin)
{
	if (attempt->item->silenced)
		return "its actor is deleted";
	if (!attempt->key)
		return "it has no actor to sign it";
	if (strcmp(origin->text, attempt->home->origin.text) == 0)
		return "the inbox is our own";
	return NULL;
}

static const char *key_id(const struct delivery_try *attempt)
{
	const struct actor actor = {
		.username = attempt->item->actor_name,
		.is_instance = attempt->item->actor_is_instance,
	};

	return actor_key_id(attempt->arena, &attempt->home->origin, &actor);
}

static bool prepare(struct delivery_try *attempt)
{
	const char *payload = attempt->item->payload_json;
	struct sig_maker maker = {
		.style = attempt->style,
		.key = attempt->key,
		.now_s = clock_wall_ms() / 1000,
	};
	struct sig_message message = {
		.method = "POST",
		.headers = attempt->headers,
		.header_count = 2,
		.body = { payload, strlen(payload) },
	};
	struct origin origin;
	const char *why;
	size_t made;

	if (!delivery_target(attempt, &origin, &message.target))
		return false;
	why = refusal(attempt, &origin);
	if (why)
		return delivery_fail(attempt, why);
	maker.key_id = key_id(attempt);
	message.scheme = origin.plain ? "http" : "https";
	attempt->headers[0] =
	    (struct http_header){ "Host", strstr(origin.text, "://") + 3 };
	attempt->headers[1] =
	    (struct http_header){ "Content-Type", "application/activity+json" };
	made = sig_make(attempt->arena, &message, &maker, attempt->headers + 2);
	delivery_request(attempt, 2 + made);
	return true;
}

static const char *style_text(enum sig_style style)
{
	return style == SIG_RFC9421 ? "rfc9421" : "cavage";
}

/* Only what says that it could not read the signature is asked again, in the
 * other style: a server in trouble would get twice the load. */
static bool knock_again(struct delivery_try *attempt, int code)
{
	if ((code != 400 && code != 401) || attempt->knocked_twice)
		return false;
	attempt->knocked_twice = true;
	attempt->style =
	    attempt->style == SIG_CAVAGE ? SIG_RFC9421 : SIG_CAVAGE;
	return true;
}

static bool answered(
    struct delivery_try *attempt, const struct client_result *result)
{
	int code = result->head_status;

	if (code >= 300 && code <= 399)
		return delivery_redirect(attempt, result);
	if (knock_again(attempt, code))
		return true;
	delivery_conclude(attempt, result);
	/* What another host takes says nothing about this one. */
	if (attempt->url_count > 1)
		return false;
	if (attempt->outcome.fate == FATE_DELIVERED)
		attempt->style_worked = style_text(attempt->style);
	else
		attempt->style_failed = attempt->knocked_twice &&
		    attempt->style_known && (code == 400 || code == 401);
	return false;
}

const struct outbound_delivery delivery_signed = {
	.name = "http_signed",
	.needs_key = true,
	.prepare = prepare,
	.answered = answered,
};

#include "common/fediverse/delivery.h"

#include "common/fediverse/actor.h"

static const struct outbound_delivery *const deliveries[] = {
	&delivery_noop,
	&delivery_signed,
	&delivery_webhook,
};

const struct outbound_delivery *outbound_delivery_find(const char *name)
{
	for (size_t i = 0; i < COUNT(deliveries); i++)
		if (strcmp(deliveries[i]->name, name) == 0)
			return deliveries[i];
	return NULL;
}

void delivery_begin(struct delivery_try *attempt, struct arena *arena,
    const struct home *home, const struct outbound_item *item)
{
	*attempt = (struct delivery_try){
		.arena = arena,
		.home = home,
		.item = item,
		.urls = { item->target_inbox },
		.url_count = 1,
		.outcome = { .retry_after_ms = -1 },
	};
}

void delivery_style(
    struct delivery_try *attempt, const struct outbound_domain *domain)
{
	const char *style = domain->style ? domain->style : domain->first_style;

	attempt->style =
	    strcmp(style, "rfc9421") == 0 ? SIG_RFC9421 : SIG_CAVAGE;
	attempt->style_known = domain->style != NULL;
}

bool delivery_key(struct tx *tx, const struct home *home,
    const struct outbound_item *item, struct pkey **key, struct err *err)
{
	struct err closed = { 0 };
	struct actor actor;
	bool found = false;

	*key = NULL;
	if (!item->actor_name)
		return true;
	if (!actor_by_id(tx, item->actor_user_id, &actor, &found, err))
		return false;
	if (found && !actor_key(tx_arena(tx), home->key, &actor, key, &closed))
		log_error("actor.key_closed", F("user", v_text(actor.username)),
		    F("err", v_text(closed.text)));
	return true;
}

bool delivery_fail(struct delivery_try *attempt, const char *text)
{
	attempt->outcome = (struct outcome){
		.fate = FATE_FAILED,
		.sign = SIGN_NOTHING,
		.made = attempt->url_count > 1,
		.retry_after_ms = -1,
		.text = text,
	};
	return false;
}

static bool is_same_server(
    struct arena *arena, const char *url, const char *other)
{
	struct origin a;
	struct origin b;
	const char *path;

	return url_parse(arena, url, &a, &path) &&
	    url_parse(arena, other, &b, &path) && strcmp(a.text, b.text) == 0;
}

struct outbound_result delivery_result(const struct delivery_try *attempt)
{
	const char *last = attempt->urls[attempt->url_count - 1];
	bool moved = attempt->url_count > 1 && attempt->outcome.made &&
	    !is_same_server(attempt->arena, attempt->urls[0], last);

	return (struct outbound_result){
		.item = attempt->item,
		.outcome = attempt->outcome,
		.style = attempt->style_worked,
		.style_failed = attempt->style_failed,
		.moved_to = moved ? last : NULL,
	};
}

bool delivery_hop_look(
    struct delivery_try *attempt, struct tx *tx, struct err *err)
{
	return attempt->url_count == 1 ||
	    outbound_is_blocked(tx, attempt->urls[attempt->url_count - 1],
		&attempt->barred, err);
}

bool delivery_target(
    struct delivery_try *attempt, struct origin *origin, const char **path)
{
	const char *url = attempt->urls[attempt->url_count - 1];

	if (!url_parse(attempt->arena, url, origin, path))
		return delivery_fail(attempt, "the inbox is no http(s) URL");
	if (attempt->barred)
		return delivery_fail(
		    attempt, "redirected to a server that is blocked");
	return port_is_web(origin->port) ||
	    delivery_fail(attempt, "the port is none of an inbox");
}

void delivery_request(struct delivery_try *attempt, size_t count)
{
	const char *payload = attempt->item->payload_json;

	attempt->request = (struct client_request){
		.method = "POST",
		.url = attempt->urls[attempt->url_count - 1],
		.headers = attempt->headers,
		.header_count = count,
		.body = { payload, strlen(payload) },
		.timeout_ms = DELIVERY_TIMEOUT_MS,
		.connect_ms = DELIVERY_CONNECT_MS,
		.stall_s = DELIVERY_STALL_S,
		.answer_max = DELIVERY_ANSWER_MAX,
	};
}

/* Nobody answered, or nobody was asked. */
static struct outcome silence(const struct client_result *result)
{
	struct outcome outcome = {
		.fate = FATE_RETRY,
		.sign = SIGN_FAILURE,
		.made = true,
		.unresolved = result->unresolved,
		.retry_after_ms = -1,
	};

	if (result->outcome == CLIENT_ABORTED) {
		outcome.sign = SIGN_NOTHING;
		outcome.made = false;
	}
	if (result->outcome == CLIENT_REFUSED_ADDRESS) {
		outcome.fate = FATE_FAILED;
		outcome.sign = SIGN_NOTHING;
		outcome.made = false;
	}
	return outcome;
}

void delivery_conclude(
    struct delivery_try *attempt, const struct client_result *result)
{
	int code = result->head_status;

	if (!code) {
		attempt->outcome = silence(result);
		attempt->outcome.text = outcome_text(attempt->arena, 0,
		    (struct bytes){ result->text, strlen(result->text) });
		return;
	}
	attempt->outcome = outcome_of_status(code, attempt->item->shared);
	if (code == 429 || code == 503)
		attempt->outcome.retry_after_ms = result->retry_after_ms;
	if (attempt->outcome.fate != FATE_DELIVERED)
		attempt->outcome.text =
		    outcome_text(attempt->arena, code, result->body);
}

static bool seen(const struct delivery_try *attempt, const char *url)
{
	for (size_t i = 0; i < attempt->url_count; i++)
		if (strcmp(attempt->urls[i], url) == 0)
			return true;
	return false;
}

/* NULL: it may be followed to next. */
static const char *refusal(const struct delivery_try *attempt, int code,
    const char *location, const char **next)
{
	const char *from = attempt->urls[attempt->url_count - 1];

	if (code != 301 && code != 302 && code != 307 && code != 308)
		return "not followed";
	if (!location)
		return "it says not where to";
	*next = url_join(attempt->arena, from, location);
	if (!*next)
		return "to no http(s) URL";
	if (strncmp(from, "https:", 6) == 0 && strncmp(*next, "https:", 6) != 0)
		return "to plain http";
	if (seen(attempt, *next))
		return "in a circle";
	return attempt->url_count > DELIVERY_HOPS_MAX ? "too often" : NULL;
}

bool delivery_redirect(
    struct delivery_try *attempt, const struct client_result *result)
{
	int code = result->head_status;
	const char *next = NULL;
	const char *why = refusal(attempt, code, result->location, &next);

	if (!why) {
		attempt->urls[attempt->url_count++] = next;
		return true;
	}
	attempt->outcome = outcome_of_status(code, attempt->item->shared);
	attempt->outcome.text =
	    arena_printf(attempt->arena, "%d: redirected %s", code, why);
	return false;
}

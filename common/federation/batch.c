#include "common/federation/batch.h"

#include "common/base/clock.h"

enum {
	SKEW_MAX_MS = 5 * 60 * 1000,
	/* What a signature allows, and some. */
	PEER_SKEW_MAX_MS = 20 * 60 * 1000
};

void events_reopen(struct relay_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct relay_event *event = &events[i];

		if (event->state == EVENT_MALFORMED)
			continue;
		event->state = EVENT_OPEN;
		event->reason = NULL;
		event->channel = 0;
		event->is_forgotten = false;
		event->actor.person = NULL;
	}
}

void event_accept(struct relay_event *event)
{
	event->state = EVENT_ACCEPTED;
}

void event_refuse(const struct relay_batch *batch, struct relay_event *event,
    const struct err *err)
{
	event->state = EVENT_REFUSED;
	event->reason = err_reason(err);
	event->why = arena_text(batch->arena, err->text);
	event->code = err->code;
}

void event_deny(const struct relay_batch *batch, struct relay_event *event,
    enum err_code code, const char *reason, const char *why)
{
	struct err err = { 0 };

	err_refuse(&err, code, reason, "%s", why);
	event_refuse(batch, event, &err);
}

static bool port_fits(int port, const struct origin *origin)
{
	return port == 0 || port == origin->port;
}

const char *batch_host(const struct relay_batch *batch, const char *instance)
{
	const struct origin *ours = &batch->node->origin;
	const char *host;
	int port;

	/* What nearly every event says needs no parser. */
	if (strcmp(instance, batch->source.text) == 0)
		return batch->source.host;
	if (strcmp(instance, batch->source.host) == 0)
		return batch->source.host;
	if (strcmp(instance, ours->host) == 0)
		return ours->host;
	host = instance_host(batch->arena, instance, &port);
	if (!host)
		return NULL;
	if (strcmp(host, batch->source.host) == 0)
		return port_fits(port, &batch->source) ? batch->source.host
						       : NULL;
	if (strcmp(host, ours->host) == 0)
		return port_fits(port, ours) ? ours->host : NULL;
	return host;
}

bool event_attribute(const struct relay_batch *batch, struct relay_event *event,
    const char *home_user_id, const char *home_instance, struct err *err)
{
	const char *host =
	    home_instance ? batch_host(batch, home_instance) : NULL;

	if (host != batch->source.host && host != batch->node->origin.host)
		return err_set(err, ERR_ATTRIBUTION,
		    "the actor is at home neither there nor here");
	event->actor.host = host;
	event->actor.home_user_id = home_user_id;
	event->is_homeward = host == batch->node->origin.host;
	return true;
}

static int64_t within(int64_t ms, int64_t skew_ms)
{
	int64_t now = clock_wall_ms();

	return ms <= 0 || ms > now + skew_ms ? now : ms;
}

int64_t time_capped(int64_t ms)
{
	return within(ms, SKEW_MAX_MS);
}

int64_t time_of_peer(int64_t ms)
{
	return within(ms, PEER_SKEW_MAX_MS);
}

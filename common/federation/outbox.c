#include "common/federation/outbox.h"

#include "common/base/log.h"
#include "common/federation/person.h"
#include "common/pg/notify.h"

#include "common/federation/outbox.sql.h"

struct told {
	int64_t peer;
	const char *host;
};

static const struct shape told_shape[] = {
	SHAPE(ID, struct told, peer, NULL),
	SHAPE(TEXT, struct told, host, NULL),
	SHAPE_END(struct told),
};

/* ---- who gets it ---- */

void targets_init(struct targets *targets, struct arena *arena,
    const struct node *node, const char *except_host)
{
	*targets = (struct targets){
		.arena = arena,
		.ours = node->origin.host,
		.except = except_host,
	};
}

static void targets_grow(struct targets *targets)
{
	const char **hosts;

	targets->room = targets->room ? 2 * targets->room : 16;
	hosts = arena_array(targets->arena, targets->room, sizeof(*hosts));
	if (targets->count)
		memcpy(hosts, targets->hosts, targets->count * sizeof(*hosts));
	targets->hosts = hosts;
}

bool targets_have(const struct targets *targets, const char *host)
{
	for (size_t i = 0; i < targets->count; i++)
		if (strcmp(targets->hosts[i], host) == 0)
			return true;
	return false;
}

void targets_add(struct targets *targets, const char *host)
{
	if (!host || strcmp(host, targets->ours) == 0 ||
	    (targets->except && strcmp(host, targets->except) == 0))
		return;
	if (targets_have(targets, host))
		return;
	if (targets->count == targets->room)
		targets_grow(targets);
	targets->hosts[targets->count++] = host;
}

bool targets_take(
    struct targets *targets, const char *host, struct targets *one)
{
	for (size_t i = 0; host && i < targets->count; i++) {
		if (strcmp(targets->hosts[i], host) != 0)
			continue;
		*one = *targets;
		one->hosts = NULL;
		one->count = one->room = 0;
		targets_add(one, host);
		targets->hosts[i] = targets->hosts[--targets->count];
		return true;
	}
	return false;
}

static void declared_add(void *arg, const char *host, int port)
{
	(void)port;
	targets_add(arg, host);
}

void targets_add_declared(
    struct targets *targets, const char *replicated_instances)
{
	instances_each(
	    targets->arena, replicated_instances, declared_add, targets);
}

void targets_init_fresh(struct targets *targets, struct arena *arena,
    const struct node *node, const char *before, const char *after)
{
	struct targets known, declared;

	targets_init(targets, arena, node, NULL);
	targets_init(&known, arena, node, NULL);
	targets_add_declared(&known, before);
	targets_init(&declared, arena, node, NULL);
	targets_add_declared(&declared, after);
	for (size_t i = 0; i < declared.count; i++)
		if (!targets_have(&known, declared.hosts[i]))
			targets_add(targets, declared.hosts[i]);
}

/* ---- what it says ---- */

void payload_open(struct json_out *out, struct buf *text, struct arena *arena)
{
	buf_init(text, arena, OUTBOX_PAYLOAD_MAX);
	*out = (struct json_out){ .buf = text };
	json_open(out, NULL);
}

const char *payload_close(struct json_out *out)
{
	const struct buf *text = out->buf;

	json_close(out);
	assert(buf_ok(text));
	return arena_textn(text->arena, text->data + 1, text->len - 2);
}

/* ---- queueing ---- */

static bool was_told(const struct rows *told, const char *host)
{
	const struct told *all = told->items;

	for (size_t i = 0; i < told->count; i++)
		if (strcmp(all[i].host, host) == 0)
			return true;
	return false;
}

static void log_untold(const struct targets *targets, const struct rows *told,
    const char *entity_id)
{
	for (size_t i = 0; i < targets->count; i++)
		if (!was_told(told, targets->hosts[i]))
			log_warn("outbox.no_peer",
			    F("peer", v_text(targets->hosts[i])),
			    F("entry", v_text(entity_id)));
}

bool outbox_add(struct tx *tx, const struct outbox_event *event,
    const struct targets *targets, struct err *err)
{
	struct rows rows;
	const struct told *told;

	if (targets->count == 0 && !event->to_all && event->unlogged)
		return true;
	if (!sql_many(tx, &SQL_outbox_add, told_shape, &rows, err,
		v_texts(targets->hosts, targets->count), v_bool(event->to_all),
		v_text(targets->except), v_text(event->context_type),
		v_text(event->context_id), v_text(event->event_type),
		v_text(event->entity_id), v_text(event->payload),
		v_bool(event->unlogged), v_bool(event->is_message),
		v_bool(event->homeward), v_time(event->at),
		v_text(event->sync_context_id)))
		return false;
	told = rows.items;
	/* One row without a host: relay is disabled. */
	if (rows.count && !told[0].host)
		return true;
	log_untold(targets, &rows, event->entity_id);
	for (size_t i = 0; i < rows.count; i++)
		signal_outbox_peer(tx, told[i].peer);
	return true;
}

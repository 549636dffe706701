#include <utlist.h>

#include "common/net/url.h"
#include "outboxd/fediverse_parts.h"

enum {
	AT_ONCE_MAX = 4,
	LOOK_FIRST_MS = 1000,
	LOOK_EVERY_MS = 60 * 1000,
	ANSWER_MAX = 64 * 1024,
	TIMEOUT_MS = 10 * 1000
};

static const int64_t every_ms = 7 * 86400 * INT64_C(1000);

/* One dead domain, asked. */
struct probe {
	struct fediverse_probes *probes;
	struct arena *arena;
	const char *domain;
	struct probe *prev, *next;
	bool failed;
	struct err err;
};

struct fediverse_probes {
	struct fediverse *all;
	struct loop_timer *look;
	struct arena *arena; /* of a look */
	struct rows domains;
	struct probe *asked; /* on the wire */
	bool failed;
	struct err err;
};

/* ---- it lives ---- */

static void revive_run(void *item, void *state)
{
	struct probe *probe = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);

	probe->failed = !outbound_revive(tx, probe->domain, &probe->err) ||
	    !tx_commit(tx, &probe->err);
}

static void probe_free(struct probe *probe)
{
	struct arena *arena = probe->arena;

	arena_free(&arena);
}

static void revive_done(void *item)
{
	struct probe *probe = item;
	struct fediverse *all = probe->probes->all;

	all->pending--;
	if (probe->failed)
		log_warn("domain.not_revived", F("peer", v_text(probe->domain)),
		    F("err", v_text(probe->err.text)));
	else
		log_info("domain.revived", F("peer", v_text(probe->domain)));
	probe_free(probe);
}

/* Whatever it says short of a server's error, somebody is there. */
static void on_answer(void *arg, const struct client_result *result)
{
	struct probe *probe = arg;
	struct fediverse *all = probe->probes->all;
	int code = result->head_status;

	DL_DELETE(probe->probes->asked, probe);
	if (code >= 200 && code <= 499 && code != 410 &&
	    work_submit(all->def.pool, revive_run, revive_done, probe)) {
		all->pending++;
		return;
	}
	probe_free(probe);
}

/* ---- asking ---- */

static void probe_begin(struct fediverse_probes *probes, const char *domain)
{
	struct arena *arena = arena_new();
	struct probe *probe = ARENA_NEW(arena, struct probe);
	const char *host = arena_textn(arena, domain, strcspn(domain, ":"));
	const struct client_request request = {
		.method = "GET",
		.url = arena_printf(arena, "%s://%s/.well-known/nodeinfo",
		    host_is_local(host) ? "http" : "https", domain),
		.timeout_ms = TIMEOUT_MS,
		.answer_max = ANSWER_MAX,
	};

	probe->arena = arena;
	probe->probes = probes;
	probe->domain = arena_text(arena, domain);
	DL_APPEND(probes->asked, probe);
	client_send(probes->all->client, &request, on_answer, probe);
}

static void look_run(void *item, void *state)
{
	struct fediverse_probes *probes = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, probes->arena);

	probes->failed = !outbound_probe(tx, AT_ONCE_MAX, every_ms,
			     &probes->domains, &probes->err) ||
	    !tx_commit(tx, &probes->err);
}

static void look_done(void *item)
{
	struct fediverse_probes *probes = item;
	struct fediverse *all = probes->all;
	const struct outbound_lease *domains = probes->domains.items;

	all->pending--;
	if (probes->failed)
		log_warn(
		    "domains.unlooked", F("err", v_text(probes->err.text)));
	for (size_t i = 0; i < probes->domains.count && !probes->failed &&
	     all->client && !all->draining;
	     i++)
		probe_begin(probes, domains[i].domain);
	loop_timer_arm(probes->look, LOOK_EVERY_MS);
}

static void on_look(void *arg)
{
	struct fediverse_probes *probes = arg;
	struct fediverse *all = probes->all;

	arena_reset(probes->arena);
	probes->domains = (struct rows){ .count = 0 };
	if (all->up && !all->draining && !probes->asked &&
	    work_submit(all->def.pool, look_run, look_done, probes))
		all->pending++;
	else
		loop_timer_arm(probes->look, LOOK_FIRST_MS);
}

/* ---- life ---- */

struct fediverse_probes *fediverse_probes_new(struct fediverse *all)
{
	struct fediverse_probes *probes = calloc(1, sizeof(*probes));

	if (!probes)
		abort();
	probes->all = all;
	probes->arena = arena_new();
	probes->look = loop_timer_new(all->def.loop, on_look, probes);
	loop_timer_arm(probes->look, LOOK_FIRST_MS);
	return probes;
}

void fediverse_probes_free(struct fediverse_probes **probes)
{
	struct fediverse_probes *p = *probes;

	assert(!p->asked);
	loop_timer_free(&p->look);
	arena_free(&p->arena);
	free(p);
	*probes = NULL;
}

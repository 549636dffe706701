#include "janitord/rotate.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/federation/rotation.h"
#include "janitord/janitord.h"

enum { EVERY_MS = 5000, AT_ONCE = 4 };

struct rotator {
	struct work_pool *pool;
	int64_t next_ms; /* steady */
	bool looking;
	bool failed;
	struct err err;
};

static void tell(const char *event, const struct rows *rows)
{
	const struct rotating *peers = rows->items;

	for (size_t i = 0; i < rows->count; i++)
		log_info(event, F("peer", v_text(peers[i].origin)));
}

static void look_run(void *item, void *state)
{
	struct rotator *rotator = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);
	struct rows done;
	struct rows asked;

	rotator->err = (struct err){ 0 };
	rotator->failed = !rotation_tidy(tx, 0, &done, &rotator->err) ||
	    !rotation_begin_due(tx, AT_ONCE, &asked, &rotator->err) ||
	    !tx_commit(tx, &rotator->err);
	if (rotator->failed)
		return;
	tell("rotation.done", &done);
	tell("rotation.due", &asked);
}

static void look_done(void *item)
{
	struct rotator *rotator = item;

	rotator->looking = false;
	if (rotator->failed)
		log_warn(
		    "rotation.failed", F("err", v_text(rotator->err.text)));
}

void rotator_look(struct rotator *rotator)
{
	if (rotator->looking || clock_steady_ms() < rotator->next_ms)
		return;
	rotator->next_ms = clock_steady_ms() + EVERY_MS;
	rotator->looking =
	    work_submit(rotator->pool, look_run, look_done, rotator);
}

struct rotator *rotator_new(struct work_pool *pool)
{
	struct rotator *rotator = calloc(1, sizeof(*rotator));

	if (!rotator)
		abort();
	rotator->pool = pool;
	return rotator;
}

void rotator_free(struct rotator **rotator)
{
	free(*rotator);
	*rotator = NULL;
}

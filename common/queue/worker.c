#include "common/queue/worker.h"

#include <unistd.h>

#include "common/base/build.h"
#include "common/base/clock.h"
#include "common/pg/schema.h"
#include "common/queue/worker.sql.h"

enum { HOST_MAX = 256, MINUTE_MS = 60 * 1000 };

struct drawn {
	int64_t id;
};

static const struct shape drawn_shape[] = {
	SHAPE(ID, struct drawn, id, NULL),
	SHAPE_END(struct drawn),
};

int64_t worker_pace_per_minute(struct worker_pace *pace, int64_t total)
{
	int64_t now_ms = clock_steady_ms();
	struct worker_pace before = *pace;

	*pace = (struct worker_pace){ total, now_ms };
	if (!before.at_ms || now_ms <= before.at_ms)
		return 0;
	return (total - before.total) * MINUTE_MS / (now_ms - before.at_ms);
}

bool worker_seen(struct tx *tx, const struct worker_self *self,
    const char *rates, struct err *err)
{
	char host[HOST_MAX] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	return sql_none(tx, &SQL_worker_write, err, v_id(self->id),
	    v_text(self->daemon), v_text(self->instance), v_text(host),
	    v_int(getpid()), v_text(POSTRIDER_VERSION), v_int(schema_needed),
	    v_text(rates));
}

bool worker_register(struct tx *tx, struct worker_self *self, struct err *err)
{
	struct worker_self drawn = *self;
	struct drawn row;

	if (!sql_one(tx, &SQL_worker_id, drawn_shape, &row, err))
		return false;
	drawn.id = row.id;
	if (!worker_seen(tx, &drawn, "{}", err))
		return false;
	self->id = row.id;
	return true;
}

bool worker_leave(
    struct tx *tx, const struct worker_self *self, struct err *err)
{
	return sql_none(tx, &SQL_worker_leave, err, v_id(self->id));
}

bool worker_sweep(struct tx *tx, struct err *err)
{
	return sql_none(tx, &SQL_worker_sweep, err);
}

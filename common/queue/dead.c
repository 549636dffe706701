#include "common/queue/dead.h"

#include "common/queue/dead.sql.h"

bool dead_from_outbox(
    struct tx *tx, const struct dead_letters *letters, struct err *err)
{
	return sql_none(tx, &SQL_dead_from_outbox, err, v_id(letters->peer),
	    v_text(letters->origin), v_ids(letters->ids, letters->count),
	    v_texts(letters->whys, letters->count),
	    v_texts(letters->answers, letters->count));
}

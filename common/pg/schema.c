#include "common/pg/schema.h"
#include "common/pg/schema.sql.h"

const int schema_needed = 19;

struct schema_row {
	bool recorded;
	int64_t number;
};

static const struct shape recorded_shape[] = {
	SHAPE(BOOL, struct schema_row, recorded, NULL),
	SHAPE_END(struct schema_row),
};

static const struct shape applied_shape[] = {
	SHAPE(INT, struct schema_row, number, NULL),
	SHAPE_END(struct schema_row),
};

bool schema_check(struct tx *tx, struct err *err)
{
	struct schema_row row = { 0 };

	if (!sql_one(tx, &SQL_schema_recorded, recorded_shape, &row, err))
		return false;
	if (row.recorded &&
	    !sql_one(tx, &SQL_schema_applied, applied_shape, &row, err))
		return false;
	if (row.number == schema_needed)
		return true;
	if (row.number == 0)
		return err_set(err, ERR_CONFLICT,
		    "the database has no schema of Postrider, this program "
		    "needs %d: run postrider-ctl migrate up",
		    schema_needed);
	if (row.number < schema_needed)
		return err_set(err, ERR_CONFLICT,
		    "the database has schema %" PRId64 ", this program needs "
		    "%d: run postrider-ctl migrate up",
		    row.number, schema_needed);
	return err_set(err, ERR_CONFLICT,
	    "the database has schema %" PRId64 ", this program needs %d: "
	    "install the newer program",
	    row.number, schema_needed);
}

#include <endian.h>
#include <limits.h>

#include "common/pg/sql_conn.h"

/* Milliseconds from 1970 to PostgreSQL's 2000-01-01. */
#define EPOCH_MS INT64_C(946684800000)

static void put32(struct buf *out, int32_t number)
{
	uint32_t be = htobe32((uint32_t)number);

	buf_add(out, &be, sizeof(be));
}

static void put64(struct buf *out, int64_t number)
{
	uint64_t be = htobe64((uint64_t)number);

	buf_add(out, &be, sizeof(be));
}

static void put_null(struct buf *out)
{
	put32(out, -1);
}

static int64_t pg_time(int64_t ms)
{
	return (ms - EPOCH_MS) * 1000;
}

static Oid array_element(Oid array)
{
	switch (array) {
	case SQL_TYPE_INT8S:
		return SQL_TYPE_INT8;
	case SQL_TYPE_TEXTS:
		return SQL_TYPE_TEXT;
	case SQL_TYPE_TIMES:
		return SQL_TYPE_TIME;
	default:
		return SQL_TYPE_BOOL;
	}
}

static void put_element(struct buf *out, const struct val *val, size_t place)
{
	switch (val->kind) {
	case VAL_TEXTS:
		if (!val->texts[place]) {
			put_null(out);
			return;
		}
		put32(out, (int32_t)strlen(val->texts[place]));
		buf_text(out, val->texts[place]);
		return;
	case VAL_BOOLS:
		put32(out, 1);
		buf_char(out, val->flags[place] ? 1 : 0);
		return;
	case VAL_INTS:
		put32(out, 8);
		put64(out, val->numbers[place]);
		return;
	default:
		if (!val->numbers[place]) {
			put_null(out);
			return;
		}
		put32(out, 8);
		put64(out,
		    val->kind == VAL_TIMES ? pg_time(val->numbers[place])
					   : val->numbers[place]);
	}
}

static bool has_nulls(const struct val *val)
{
	if (val->kind == VAL_BOOLS || val->kind == VAL_INTS)
		return false;
	for (size_t i = 0; i < val->count; i++)
		if (val->kind == VAL_TEXTS ? !val->texts[i] : !val->numbers[i])
			return true;
	return false;
}

/* Dimensions, null flag, element type; size and lower bound; elements. */
static void put_array(struct buf *out, const struct val *val, Oid type)
{
	assert(val->count <= INT_MAX);
	put32(out, val->count ? 1 : 0);
	put32(out, has_nulls(val));
	put32(out, (int32_t)array_element(type));
	if (!val->count)
		return;
	put32(out, (int32_t)val->count);
	put32(out, 1);
	for (size_t i = 0; i < val->count; i++)
		put_element(out, val, i);
}

static Oid kind_type(enum val_kind kind)
{
	static const Oid types[] = {
		[VAL_END] = SQL_TYPE_UNKNOWN,
		[VAL_NULL] = SQL_TYPE_UNKNOWN,
		[VAL_ID] = SQL_TYPE_INT8,
		[VAL_INT] = SQL_TYPE_INT8,
		[VAL_BOOL] = SQL_TYPE_BOOL,
		[VAL_REAL] = SQL_TYPE_FLOAT8,
		[VAL_TEXT] = SQL_TYPE_TEXT,
		[VAL_TIME] = SQL_TYPE_TIME,
		[VAL_SPAN] = SQL_TYPE_SPAN,
		[VAL_BYTES] = SQL_TYPE_BYTEA,
		[VAL_IDS] = SQL_TYPE_INT8S,
		[VAL_INTS] = SQL_TYPE_INT8S,
		[VAL_TEXTS] = SQL_TYPE_TEXTS,
		[VAL_TIMES] = SQL_TYPE_TIMES,
		[VAL_BOOLS] = SQL_TYPE_BOOLS,
	};

	assert((size_t)kind < COUNT(types));
	return types[kind];
}

static void put_real(struct buf *out, double real)
{
	int64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	put64(out, bits);
}

/* What isn't sent as it stands. */
static void put_encoded(struct buf *out, const struct val *val, Oid type)
{
	switch (val->kind) {
	case VAL_ID:
	case VAL_INT:
		put64(out, val->number);
		break;
	case VAL_BOOL:
		buf_char(out, val->flag ? 1 : 0);
		break;
	case VAL_REAL:
		put_real(out, val->real);
		break;
	case VAL_TIME:
		put64(out, pg_time(val->number));
		break;
	case VAL_SPAN:
		put64(out, val->number * 1000);
		put32(out, 0);
		put32(out, 0);
		break;
	default:
		put_array(out, val, type);
	}
}

static bool is_direct(const struct val *val)
{
	return val->kind == VAL_NULL || val->kind == VAL_TEXT ||
	    val->kind == VAL_BYTES;
}

static void fill_direct(
    struct sql_params *params, size_t place, const struct val *val)
{
	if (val->kind == VAL_TEXT) {
		params->values[place] = val->text;
		params->lengths[place] = (int)strlen(val->text);
	} else if (val->kind == VAL_BYTES) {
		assert(val->bytes.len <= INT_MAX);
		params->values[place] = val->bytes.data ? val->bytes.data : "";
		params->lengths[place] = (int)val->bytes.len;
	} else {
		params->values[place] = NULL;
		params->lengths[place] = 0;
	}
}

void sql_params_fill(struct sql_params *params, struct buf *scratch,
    const struct val *vals, size_t count)
{
	size_t starts[SQL_PARAMS_MAX];

	assert(count <= SQL_PARAMS_MAX);
	buf_clear(scratch);
	params->count = (int)count;
	for (size_t i = 0; i < count; i++) {
		/* A null of v_id, v_text and so on still knows its type. */
		params->types[i] = kind_type(vals[i].kind == VAL_NULL
			? (enum val_kind)vals[i].count
			: vals[i].kind);
		params->formats[i] = 1;
		starts[i] = scratch->len;
		if (is_direct(&vals[i])) {
			fill_direct(params, i, &vals[i]);
			continue;
		}
		put_encoded(scratch, &vals[i], params->types[i]);
		params->lengths[i] = (int)(scratch->len - starts[i]);
	}
	assert(buf_ok(scratch));
	for (size_t i = 0; i < count; i++)
		if (!is_direct(&vals[i]))
			params->values[i] = scratch->data + starts[i];
}

#include <endian.h>
#include <math.h>

#include "common/pg/sql_conn.h"

#define EPOCH_US INT64_C(946684800000000)

enum { COLUMNS_MAX = 64 };

/* The result's column for each member of a shape; -1: not from the row. */
struct column_map {
	const struct shape *shape;
	int columns[COLUMNS_MAX];
	Oid types[COLUMNS_MAX];
	size_t size; /* of a record */
};

static int64_t read_int(const char *data, int len)
{
	uint64_t be64;
	uint32_t be32;
	uint16_t be16;

	if (len == 8) {
		memcpy(&be64, data, sizeof(be64));
		return (int64_t)be64toh(be64);
	}
	if (len == 4) {
		memcpy(&be32, data, sizeof(be32));
		return (int32_t)be32toh(be32);
	}
	memcpy(&be16, data, sizeof(be16));
	return (int16_t)be16toh(be16);
}

static double read_real(const char *data, Oid type)
{
	if (type == SQL_TYPE_FLOAT8) {
		int64_t bits = read_int(data, 8);
		double real;

		memcpy(&real, &bits, sizeof(real));
		return real;
	}
	if (type == SQL_TYPE_FLOAT4) {
		int32_t bits = (int32_t)read_int(data, 4);
		float real;

		memcpy(&real, &bits, sizeof(real));
		return real;
	}
	return (double)read_int(data,
	    type == SQL_TYPE_INT8	? 8
		: type == SQL_TYPE_INT2 ? 2
					: 4);
}

/* Unix ms, cut down; -infinity is never, infinity the end of time. */
static int64_t read_time(const char *data)
{
	int64_t us = read_int(data, 8);

	if (us == INT64_MIN)
		return 0;
	if (us > INT64_MAX - EPOCH_US)
		return INT64_MAX;
	us += EPOCH_US;
	return us >= 0 ? us / 1000 : -((-us + 999) / 1000);
}

static int64_t read_span_ms(const char *data)
{
	const int64_t day_ms = INT64_C(86400000);

	return read_int(data, 8) / 1000 + read_int(data + 8, 4) * day_ms +
	    read_int(data + 12, 4) * 30 * day_ms;
}

static const char *read_uuid(struct arena *arena, const char *data)
{
	const unsigned char *b = (const unsigned char *)data;

	return arena_printf(arena,
	    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	    "%02x%02x%02x%02x%02x%02x",
	    b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
	    b[11], b[12], b[13], b[14], b[15]);
}

static const char *read_text(
    struct arena *arena, const char *data, int len, Oid type)
{
	if (type == SQL_TYPE_UUID)
		return read_uuid(arena, data);
	if (type == SQL_TYPE_JSONB) /* behind a version byte */
		return arena_textn(arena, data + 1, (size_t)len - 1);
	return arena_textn(arena, data, (size_t)len);
}

static bool is_text(Oid type)
{
	return type == SQL_TYPE_TEXT || type == SQL_TYPE_VARCHAR ||
	    type == SQL_TYPE_BPCHAR || type == SQL_TYPE_NAME ||
	    type == SQL_TYPE_LITERAL || type == SQL_TYPE_JSON ||
	    type == SQL_TYPE_JSONB || type == SQL_TYPE_UUID;
}

static bool is_int(Oid type)
{
	return type == SQL_TYPE_INT8 || type == SQL_TYPE_INT4 ||
	    type == SQL_TYPE_INT2 || type == SQL_TYPE_OID;
}

static bool is_real(Oid type)
{
	return type == SQL_TYPE_FLOAT8 || type == SQL_TYPE_FLOAT4;
}

static bool type_fits(enum shape_kind kind, Oid type)
{
	switch (kind) {
	case SHAPE_ID:
		return is_int(type);
	case SHAPE_INT:
		return is_int(type) || type == SQL_TYPE_SPAN;
	case SHAPE_BOOL:
		return type == SQL_TYPE_BOOL;
	case SHAPE_REAL:
		return is_real(type) || is_int(type);
	case SHAPE_TEXT:
	case SHAPE_RAW:
		return is_text(type);
	case SHAPE_TIME:
		return type == SQL_TYPE_TIME;
	case SHAPE_BYTES:
		return type == SQL_TYPE_BYTEA;
	case SHAPE_OBJECT:
	case SHAPE_LIST:
	case SHAPE_END_KIND:
		break;
	}
	return false;
}

static bool from_row(const struct shape *member)
{
	return member->kind != SHAPE_OBJECT && member->kind != SHAPE_LIST;
}

static int column_find(const PGresult *result, const char *name)
{
	for (int i = 0; i < PQnfields(result); i++)
		if (strcmp(PQfname(result, i), name) == 0)
			return i;
	return -1;
}

static bool map_member(struct column_map *map, const PGresult *result,
    size_t place, struct err *err)
{
	const struct shape *member = &map->shape[place];
	int column;

	map->columns[place] = -1;
	if (!from_row(member))
		return true;
	column = column_find(result, member->column);
	if (column < 0)
		return err_set(
		    err, ERR_BUG, "no column %s in the row", member->column);
	map->columns[place] = column;
	map->types[place] = PQftype(result, column);
	if (!type_fits(member->kind, map->types[place]))
		return err_set(err, ERR_BUG, "column %s is of type %u",
		    member->column, map->types[place]);
	return true;
}

static bool map_columns(struct column_map *map, const PGresult *result,
    const struct shape *shape, struct err *err)
{
	size_t place;

	map->shape = shape;
	for (place = 0; shape[place].kind != SHAPE_END_KIND; place++) {
		assert(place < COLUMNS_MAX);
		if (!map_member(map, result, place, err))
			return false;
	}
	map->size = shape[place].offset;
	return true;
}

static void fill_null(const struct shape *member, void *at)
{
	const double nan = NAN;

	switch (member->kind) {
	case SHAPE_BOOL:
		*(bool *)at = false;
		break;
	case SHAPE_REAL:
		memcpy(at, &nan, sizeof(nan));
		break;
	case SHAPE_TEXT:
	case SHAPE_RAW:
		*(const char **)at = NULL;
		break;
	case SHAPE_BYTES:
		*(struct bytes *)at = (struct bytes){ NULL, 0 };
		break;
	default:
		*(int64_t *)at = 0;
	}
}

static void fill_value(struct arena *arena, const struct shape *member,
    Oid type, struct bytes data, void *at)
{
	switch (member->kind) {
	case SHAPE_BOOL:
		*(bool *)at = *(const char *)data.data != 0;
		break;
	case SHAPE_REAL:
		*(double *)at = read_real(data.data, type);
		break;
	case SHAPE_TEXT:
	case SHAPE_RAW:
		*(const char **)at =
		    read_text(arena, data.data, (int)data.len, type);
		break;
	case SHAPE_BYTES:
		*(struct bytes *)at =
		    (struct bytes){ arena_textn(arena, data.data, data.len),
			    data.len };
		break;
	case SHAPE_TIME:
		*(int64_t *)at = read_time(data.data);
		break;
	default:
		*(int64_t *)at = type == SQL_TYPE_SPAN
		    ? read_span_ms(data.data)
		    : read_int(data.data, (int)data.len);
	}
}

static void fill_record(struct arena *arena, const struct column_map *map,
    const PGresult *result, int row, void *record)
{
	const struct shape *member = map->shape;

	for (size_t i = 0; member[i].kind != SHAPE_END_KIND; i++) {
		int column = map->columns[i];
		void *at = (char *)record + member[i].offset;
		struct bytes data;

		if (column < 0)
			continue;
		if (PQgetisnull(result, row, column)) {
			fill_null(&member[i], at);
			continue;
		}
		data.data = PQgetvalue(result, row, column);
		data.len = (size_t)PQgetlength(result, row, column);
		fill_value(arena, &member[i], map->types[i], data, at);
	}
}

bool sql_read_one(struct arena *arena, const PGresult *result,
    const struct shape *shape, void *record, struct err *err)
{
	struct column_map map;

	if (!shape)
		return true;
	if (!map_columns(&map, result, shape, err))
		return false;
	if (PQntuples(result) > 0)
		fill_record(arena, &map, result, 0, record);
	return true;
}

bool sql_read_many(struct arena *arena, const PGresult *result,
    const struct shape *shape, struct rows *rows, struct err *err)
{
	struct column_map map;
	int count = PQntuples(result);
	char *items;

	if (!shape)
		return true;
	if (!map_columns(&map, result, shape, err))
		return false;
	items = arena_array(arena, (size_t)count, map.size);
	for (int i = 0; i < count; i++)
		fill_record(
		    arena, &map, result, i, items + (size_t)i * map.size);
	*rows = (struct rows){ items, (size_t)count };
	return true;
}

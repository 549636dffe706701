#include <math.h>

#include "common/base/json.h"

/* A member of a record, as its kind says. */
union member {
	const void *at;
	const int64_t *number;
	const bool *flag;
	const double *real;
	const char *const *text;
	const void *const *record;
	const struct rows *rows;
};

static bool is_null(const struct shape *shape, union member member)
{
	switch (shape->kind) {
	case SHAPE_ID:
	case SHAPE_TIME:
		return *member.number == 0;
	case SHAPE_REAL:
		return isnan(*member.real);
	case SHAPE_TEXT:
	case SHAPE_RAW:
		return *member.text == NULL;
	case SHAPE_OBJECT:
		return *member.record == NULL;
	case SHAPE_LIST:
		return shape->skip_null && member.rows->count == 0;
	case SHAPE_END_KIND:
	case SHAPE_INT:
	case SHAPE_BOOL:
	case SHAPE_BYTES:
		break;
	}
	return false;
}

static void put_rows(struct json_out *out, const char *name,
    const struct shape *shape, const struct rows *rows)
{
	json_put_raw(out, name, (struct bytes){ "", 0 });
	json_write_rows(out->buf, shape, rows);
}

static void put_member(
    struct json_out *out, const struct shape *shape, union member member)
{
	switch (shape->kind) {
	case SHAPE_ID:
		json_put_id(out, shape->name, *member.number);
		break;
	case SHAPE_INT:
	case SHAPE_TIME:
		json_put_int(out, shape->name, *member.number);
		break;
	case SHAPE_BOOL:
		json_put_bool(out, shape->name, *member.flag);
		break;
	case SHAPE_REAL:
		json_put_real(out, shape->name, *member.real);
		break;
	case SHAPE_TEXT:
		json_put_text(out, shape->name, *member.text);
		break;
	case SHAPE_RAW:
		json_put_raw(out, shape->name,
		    (struct bytes){ *member.text, strlen(*member.text) });
		break;
	case SHAPE_OBJECT:
		json_put_shape(out, shape->name, shape->sub, *member.record);
		break;
	case SHAPE_LIST:
		put_rows(out, shape->name, shape->sub, member.rows);
		break;
	case SHAPE_BYTES:
	case SHAPE_END_KIND:
		break;
	}
}

void json_write_shape(
    struct buf *buf, const struct shape *shape, const void *record)
{
	struct json_out out = { .buf = buf };

	json_open(&out, NULL);
	for (; shape->kind != SHAPE_END_KIND; shape++) {
		union member member = { (const char *)record + shape->offset };

		if (!shape->name)
			continue;
		if (!is_null(shape, member))
			put_member(&out, shape, member);
		else if (!shape->skip_null)
			json_put_null(&out, shape->name);
	}
	json_close(&out);
}

static size_t record_size(const struct shape *shape)
{
	while (shape->kind != SHAPE_END_KIND)
		shape++;
	return shape->offset;
}

void json_write_rows(
    struct buf *buf, const struct shape *shape, const struct rows *rows)
{
	struct json_out out = { .buf = buf };
	size_t size = record_size(shape);
	const char *record = rows->items;

	json_open_list(&out, NULL);
	for (size_t i = 0; i < rows->count; i++)
		json_put_shape(&out, NULL, shape, record + i * size);
	json_close_list(&out);
}

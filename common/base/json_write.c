#include <math.h>

#include "common/base/json.h"

/* ---- text ---- */

/* What ends the quick walk through a text. */
static const bool special[256] = {
	[0 ... 0x1f] = true,
	['"'] = true,
	['\\'] = true,
};

static void put_escaped(struct buf *out, char c)
{
	static const char from[] = "\b\t\n\f\r\"\\";
	static const char to[] = "btnfr\"\\";
	const char *found = strchr(from, c);

	if (found)
		buf_add(out, (const char[]){ '\\', to[found - from] }, 2);
	else
		buf_printf(out, "\\u%04x", (unsigned)c);
}

void json_quote(struct buf *out, const char *text)
{
	const char *from = text;
	const char *p = text;

	buf_char(out, '"');
	for (;; p++) {
		if (!special[(unsigned char)*p])
			continue;
		buf_add(out, from, (size_t)(p - from));
		from = p + 1;
		if (!*p)
			break;
		put_escaped(out, *p);
	}
	buf_char(out, '"');
}

/* ---- numbers as ECMAScript's Number::toString prints them ---- */

enum { DIGITS_MAX = 17 };

/* A positive number: shortest digits, and where the point stands in them. */
static int shortest(double real, char digits[DIGITS_MAX + 1], int *point)
{
	char text[32];
	int precision = 0;
	int count = 1;

	do
		snprintf(text, sizeof(text), "%.*e", precision, real);
	while (strtod(text, NULL) != real && ++precision < DIGITS_MAX);
	digits[0] = text[0];
	if (precision > 0) {
		memcpy(digits + 1, text + 2, (size_t)precision);
		count += precision;
	}
	digits[count] = '\0';
	*point = (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
	return count;
}

static void put_zeros(struct buf *out, int count)
{
	for (int i = 0; i < count; i++)
		buf_char(out, '0');
}

static void put_exponent(
    struct buf *out, const char *digits, int count, int exponent)
{
	buf_char(out, digits[0]);
	if (count > 1) {
		buf_char(out, '.');
		buf_text(out, digits + 1);
	}
	buf_text(out, exponent < 0 ? "e-" : "e+");
	buf_int(out, exponent < 0 ? -exponent : exponent);
}

static void put_real(struct buf *out, double real)
{
	char digits[DIGITS_MAX + 1];
	int count;
	int point;

	if (!isfinite(real)) {
		buf_text(out, "null");
		return;
	}
	if (real == 0) {
		buf_char(out, '0');
		return;
	}
	if (real < 0)
		buf_char(out, '-');
	count = shortest(fabs(real), digits, &point);
	if (point > 21 || point <= -6) {
		put_exponent(out, digits, count, point - 1);
	} else if (point <= 0) {
		buf_text(out, "0.");
		put_zeros(out, -point);
		buf_text(out, digits);
	} else if (count <= point) {
		buf_text(out, digits);
		put_zeros(out, point - count);
	} else {
		buf_add(out, digits, (size_t)point);
		buf_char(out, '.');
		buf_text(out, digits + point);
	}
}

/* ---- members ---- */

static void begin(struct json_out *out, const char *name)
{
	if (out->comma)
		buf_char(out->buf, ',');
	out->comma = true;
	if (name) {
		json_quote(out->buf, name);
		buf_char(out->buf, ':');
	}
}

void json_open(struct json_out *out, const char *name)
{
	begin(out, name);
	buf_char(out->buf, '{');
	out->comma = false;
}

void json_close(struct json_out *out)
{
	buf_char(out->buf, '}');
	out->comma = true;
}

void json_open_list(struct json_out *out, const char *name)
{
	begin(out, name);
	buf_char(out->buf, '[');
	out->comma = false;
}

void json_close_list(struct json_out *out)
{
	buf_char(out->buf, ']');
	out->comma = true;
}

void json_put_null(struct json_out *out, const char *name)
{
	begin(out, name);
	buf_text(out->buf, "null");
}

void json_put_text(struct json_out *out, const char *name, const char *text)
{
	if (!text) {
		json_put_null(out, name);
		return;
	}
	begin(out, name);
	json_quote(out->buf, text);
}

void json_put_int(struct json_out *out, const char *name, int64_t number)
{
	begin(out, name);
	buf_int(out->buf, number);
}

void json_put_id(struct json_out *out, const char *name, int64_t id)
{
	if (!id) {
		json_put_null(out, name);
		return;
	}
	begin(out, name);
	buf_char(out->buf, '"');
	buf_int(out->buf, id);
	buf_char(out->buf, '"');
}

void json_put_time(struct json_out *out, const char *name, int64_t ms)
{
	if (ms)
		json_put_int(out, name, ms);
	else
		json_put_null(out, name);
}

void json_put_bool(struct json_out *out, const char *name, bool flag)
{
	begin(out, name);
	buf_text(out->buf, flag ? "true" : "false");
}

void json_put_real(struct json_out *out, const char *name, double real)
{
	begin(out, name);
	put_real(out->buf, real);
}

void json_put_raw(struct json_out *out, const char *name, struct bytes json)
{
	begin(out, name);
	buf_add(out->buf, json.data, json.len);
}

void json_put_shape(struct json_out *out, const char *name,
    const struct shape *shape, const void *record)
{
	if (!record) {
		json_put_null(out, name);
		return;
	}
	begin(out, name);
	json_write_shape(out->buf, shape, record);
}

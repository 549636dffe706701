#include "common/base/val.h"

/* A statement must know the type of a NULL too: count keeps it. */
static struct val null_of(enum val_kind kind)
{
	return (struct val){ .kind = VAL_NULL, .count = kind };
}

static struct val number(enum val_kind kind, int64_t n)
{
	if (!n)
		return null_of(kind);
	return (struct val){ .kind = kind, .number = n };
}

static struct val list(enum val_kind kind, const int64_t *numbers, size_t count)
{
	return (struct val){ .kind = kind, .count = count, .numbers = numbers };
}

struct val v_null(void)
{
	return null_of(VAL_NULL);
}

struct val v_id(int64_t id)
{
	return number(VAL_ID, id);
}

struct val v_int(int64_t n)
{
	return (struct val){ .kind = VAL_INT, .number = n };
}

struct val v_bool(bool flag)
{
	return (struct val){ .kind = VAL_BOOL, .flag = flag };
}

struct val v_real(double real)
{
	return (struct val){ .kind = VAL_REAL, .real = real };
}

struct val v_text(const char *text)
{
	if (!text)
		return null_of(VAL_TEXT);
	return (struct val){ .kind = VAL_TEXT, .text = text };
}

struct val v_time(int64_t ms)
{
	return number(VAL_TIME, ms);
}

struct val v_span(int64_t ms)
{
	return (struct val){ .kind = VAL_SPAN, .number = ms };
}

struct val v_bytes(struct bytes bytes)
{
	if (!bytes.data)
		return null_of(VAL_BYTES);
	return (struct val){ .kind = VAL_BYTES, .bytes = bytes };
}

struct val v_ids(const int64_t *ids, size_t count)
{
	return list(VAL_IDS, ids, count);
}

struct val v_ints(const int64_t *numbers, size_t count)
{
	return list(VAL_INTS, numbers, count);
}

struct val v_texts(const char *const *texts, size_t count)
{
	return (
	    struct val){ .kind = VAL_TEXTS, .count = count, .texts = texts };
}

struct val v_times(const int64_t *ms, size_t count)
{
	return list(VAL_TIMES, ms, count);
}

struct val v_bools(const bool *flags, size_t count)
{
	return (
	    struct val){ .kind = VAL_BOOLS, .count = count, .flags = flags };
}

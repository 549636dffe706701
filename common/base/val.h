/*
 * val -- typed values for statements and log lines.
 *
 * Values reach SQL as parameters and the log as fields, never printed into
 * either by hand. They borrow what they point to.
 *
 * Ids are positive 64-bit numbers; 0 is "none" and becomes NULL. Times are
 * Unix milliseconds; 0 is "never" and becomes NULL. A NULL text is NULL.
 */
#ifndef POSTRIDER_VAL_H
#define POSTRIDER_VAL_H

#include "common/base/base.h"

enum val_kind {
	VAL_END,
	VAL_NULL,
	VAL_ID,	 /* bigint */
	VAL_INT, /* bigint */
	VAL_BOOL,
	VAL_REAL,
	VAL_TEXT,
	VAL_TIME,  /* timestamptz from ms */
	VAL_SPAN,  /* interval from ms */
	VAL_BYTES, /* bytea */
	VAL_IDS,   /* bigint[] */
	VAL_INTS,  /* bigint[]; 0 is 0 */
	VAL_TEXTS, /* text[]; NULL elements allowed */
	VAL_TIMES, /* timestamptz[] */
	VAL_BOOLS  /* boolean[] */
};

struct val {
	enum val_kind kind;
	size_t count; /* of arrays */
	union {
		int64_t number;
		double real;
		bool flag;
		const char *text;
		struct bytes bytes;
		const int64_t *numbers;
		const char *const *texts;
		const bool *flags;
	};
};

struct val v_null(void);
struct val v_id(int64_t id);
struct val v_int(int64_t number);
struct val v_bool(bool flag);
struct val v_real(double real);
struct val v_text(const char *text);
struct val v_time(int64_t ms);
struct val v_span(int64_t ms);
struct val v_bytes(struct bytes bytes);
struct val v_ids(const int64_t *ids, size_t count);
struct val v_ints(const int64_t *numbers, size_t count);
struct val v_texts(const char *const *texts, size_t count);
struct val v_times(const int64_t *ms, size_t count);
struct val v_bools(const bool *flags, size_t count);

/* A list of values; the first entry is a dummy so that it may be empty. */
#define VALS(...) ((const struct val[]){ { .kind = VAL_INT }, ##__VA_ARGS__ })
#define VALS_COUNT(...) \
	(sizeof((const struct val[]){ { .kind = VAL_INT }, ##__VA_ARGS__ }) / \
		sizeof(struct val) - \
	    1)

/* A named value of a log line. */
struct field {
	const char *name;
	struct val value;
};

#define F(field_name, field_value) \
	((struct field){ .name = (field_name), .value = (field_value) })

#endif

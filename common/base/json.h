/*
 * json -- the one door for JSON (DESIGN 8).
 *
 * Reading: json_parse refuses bad syntax, bad UTF-8, duplicate members, the
 * member names __proto__ and constructor.prototype, and nesting beyond
 * JSON_DEPTH_MAX; a byte order mark in front is skipped. U+0000, unpaired
 * surrogates and numbers that don't fit refuse only the reader that asks for
 * them. Readers are sticky, as a form is: the first failure is kept in err,
 * later getters give zero or NULL, one json_done asks. Texts are NUL-ended
 * and live in the arena; limits count UTF-16 units.
 *
 * Writing: byte for byte what ECMAScript's JSON.stringify gives for the same
 * members in the same order: no spaces, / and non-ASCII as they are, U+2028
 * unescaped, control characters as \b\t\n\f\r or \u00xx in lower-case hex.
 *
 * Any thread; a document belongs to one.
 */
#ifndef POSTRIDER_JSON_H
#define POSTRIDER_JSON_H

#include "common/base/buf.h"
#include "common/base/err.h"

enum { JSON_DEPTH_MAX = 64, JSON_VALUES_MAX = 1 << 18 };

enum json_type {
	JSON_ABSENT,
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_TEXT,
	JSON_ARRAY,
	JSON_OBJECT
};

struct json; /* a value inside a document; lives in its arena */

/* ---- reading ---- */

MUST_CHECK bool json_parse(struct arena *arena, struct bytes text,
    const struct json **value, struct err *err);

enum json_type json_type(const struct json *value);

/* A member by name (NULL: absent or not an object), an element by place. */
const struct json *json_member(const struct json *value, const char *name);
size_t json_count(const struct json *value);
const struct json *json_element(const struct json *value, size_t place);

/* Text of a string, or NULL when it is none or holds U+0000 or half a pair. */
const char *json_string(const struct json *value);
/* Whole number within +-2^53, or false. */
bool json_whole(const struct json *value, int64_t *number);
/* Any finite number, or false. */
bool json_number(const struct json *value, double *number);
/* True only for true. */
bool json_truth(const struct json *value);

struct json_in {
	struct arena *arena;
	const struct json *value;
	struct err *err;
	bool failed;
	bool present; /* false for an absent optional object */
};

/* Parse a body that must be an object; or read a value of a document. */
struct json_in json_read(
    struct arena *arena, struct bytes body, struct err *err);
struct json_in json_from(
    struct arena *arena, const struct json *value, struct err *err);

/*
 * name is the member, max the limit in UTF-16 units (longer refuses). The
 * plain ones must be there with the right type; the _opt ones give NULL, 0 or
 * the default when absent or null, and refuse another type. json_text
 * refuses the empty text.
 */
const char *json_text(struct json_in *in, const char *name, size_t max);
const char *json_text_opt(struct json_in *in, const char *name, size_t max);
/* Ids of this node: decimal text of a positive 63-bit number. */
int64_t json_id(struct json_in *in, const char *name);
int64_t json_id_opt(struct json_in *in, const char *name);
int64_t json_int(
    struct json_in *in, const char *name, int64_t min, int64_t max);
int64_t json_int_opt(struct json_in *in, const char *name, int64_t min,
    int64_t max, int64_t fallback);
/* Unix ms, whole, 0 < t < 2^53; fractions are cut off. */
int64_t json_time(struct json_in *in, const char *name);
int64_t json_time_opt(struct json_in *in, const char *name);
bool json_bool(struct json_in *in, const char *name);
bool json_bool_opt(struct json_in *in, const char *name, bool fallback);
double json_real_opt(struct json_in *in, const char *name, double fallback);
struct json_in json_object(struct json_in *in, const char *name);
struct json_in json_object_opt(struct json_in *in, const char *name);
/* The array itself (json_count, json_element); NULL when absent. */
const struct json *json_list(struct json_in *in, const char *name, size_t max);
const struct json *json_list_opt(
    struct json_in *in, const char *name, size_t max);
/* Marks the reader failed: "name what". The first failure stays. */
void json_fail(struct json_in *in, const char *name, const char *what);
MUST_CHECK bool json_done(struct json_in *in);

/* UTF-16 units of UTF-8 text. */
size_t json_units(const char *text);

/* ECMAScript's String.prototype.trim, into the arena; NULL stays NULL. */
const char *json_trim(struct arena *arena, const char *text);

/* ---- records: one shape fills a struct from a row and prints it ---- */

enum shape_kind {
	SHAPE_END_KIND,
	SHAPE_ID,     /* int64_t; decimal text, null when 0 */
	SHAPE_INT,    /* int64_t */
	SHAPE_BOOL,   /* bool */
	SHAPE_REAL,   /* double; null when NaN */
	SHAPE_TEXT,   /* const char *; null when NULL */
	SHAPE_TIME,   /* int64_t ms; number, null when 0 */
	SHAPE_RAW,    /* const char *: JSON text, spliced; null when NULL */
	SHAPE_BYTES,  /* struct bytes; never printed */
	SHAPE_OBJECT, /* const void * to a record of sub; null when NULL */
	SHAPE_LIST    /* struct rows of records of sub */
};

struct shape {
	enum shape_kind kind;
	size_t offset;	    /* of the member; the record's size at the end */
	const char *column; /* the column of a row: the member's name */
	const char *name;   /* the JSON member; NULL: not printed */
	bool skip_null;	    /* absent instead of null */
	const struct shape *sub;
};

#define SHAPE(k, type, member, json_name) \
	{ \
		SHAPE_##k, offsetof(type, member), #member, json_name, false, \
		    NULL \
	}
#define SHAPE_OPT(k, type, member, json_name) \
	{ \
		SHAPE_##k, offsetof(type, member), #member, json_name, true, \
		    NULL \
	}
#define SHAPE_SUB(k, type, member, json_name, shape_of_sub) \
	{ \
		SHAPE_##k, offsetof(type, member), #member, json_name, false, \
		    shape_of_sub \
	}
/* What lies in a member of the record. */
#define SHAPE_IN(k, type, outer, member) \
	{ \
		SHAPE_##k, offsetof(type, outer.member), #member, NULL, false, \
		    NULL \
	}
#define SHAPE_END(type) \
	{ \
		SHAPE_END_KIND, sizeof(type), NULL, NULL, false, NULL \
	}

/* Records of one shape in an arena. */
struct rows {
	void *items;
	size_t count;
};

/* ---- writing ---- */

void json_write_shape(
    struct buf *out, const struct shape *shape, const void *record);
void json_write_rows(
    struct buf *out, const struct shape *shape, const struct rows *rows);

struct json_out {
	struct buf *buf;
	bool comma;
};

void json_open(struct json_out *out, const char *name);	     /* { */
void json_close(struct json_out *out);			     /* } */
void json_open_list(struct json_out *out, const char *name); /* [ */
void json_close_list(struct json_out *out);		     /* ] */
/* name is NULL inside a list. */
void json_put_text(struct json_out *out, const char *name, const char *text);
void json_put_int(struct json_out *out, const char *name, int64_t number);
void json_put_id(struct json_out *out, const char *name, int64_t id);
void json_put_time(struct json_out *out, const char *name, int64_t ms);
void json_put_bool(struct json_out *out, const char *name, bool flag);
void json_put_real(struct json_out *out, const char *name, double real);
void json_put_null(struct json_out *out, const char *name);
void json_put_raw(struct json_out *out, const char *name, struct bytes json);
void json_put_shape(struct json_out *out, const char *name,
    const struct shape *shape, const void *record);

/* A text as JSON, quotes included. */
void json_quote(struct buf *out, const char *text);

#endif

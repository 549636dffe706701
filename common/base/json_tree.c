#include <ctype.h>
#include <limits.h>
#include <math.h>

#include "common/base/json.h"
#include "common/base/json_names.h"
#include "common/base/json_scan.h"

/* Children lie side by side, in their order; names are theirs. */
struct json {
	enum json_type type;
	uint32_t name_len;
	const char *name; /* NULL outside objects */
	union {
		bool truth;
		struct bytes text; /* with a NUL behind it */
		struct {
			double real;
			int64_t whole;
			bool is_whole; /* was written as an integer */
		} number;
		struct {
			const struct json *items;
			size_t count;
		} children;
	};
};

/* Values whose container is still open lie on a stack. */
struct build {
	struct arena *arena;
	const unsigned char *p;
	const unsigned char *end;
	char *texts; /* room for all that is to come */
	struct bytes name;
	bool has_name;
	struct json *stack;
	size_t count;
	size_t room;
	size_t first[JSON_DEPTH_MAX]; /* child of each open container */
	int depth;
};

static const double WHOLE_MAX = 9007199254740992.0;

/* ---- building, from a text that json_scan has passed ---- */

static struct json *push(struct build *b, enum json_type type)
{
	struct json *value;

	if (b->count == b->room) {
		b->room = b->room ? b->room * 2 : 64;
		b->stack = reallocarray(b->stack, b->room, sizeof(*b->stack));
		if (!b->stack)
			abort();
	}
	value = &b->stack[b->count++];
	*value = (struct json){ .type = type };
	if (b->has_name) {
		value->name = b->name.data;
		value->name_len = (uint32_t)b->name.len;
	}
	b->has_name = false;
	return value;
}

static const char *keep(struct build *b, const void *text, size_t len)
{
	char *kept = b->texts;

	memcpy(kept, text, len);
	kept[len] = '\0';
	b->texts += len + 1;
	return kept;
}

/* At the opening quote. */
static struct bytes take_text(struct build *b)
{
	const unsigned char *from = ++b->p;
	bool escaped = false;
	struct bytes literal;

	for (; *b->p != '"'; b->p++)
		if (*b->p == '\\') {
			escaped = true;
			b->p++;
		}
	literal = (struct bytes){ from, (size_t)(b->p++ - from) };
	if (escaped)
		return json_unescape(b->arena, literal);
	literal.data = keep(b, literal.data, literal.len);
	return literal;
}

static void add_text(struct build *b)
{
	struct bytes text = take_text(b);

	if (b->depth && !b->has_name &&
	    b->stack[b->first[b->depth - 1] - 1].type == JSON_OBJECT) {
		b->name = text;
		b->has_name = true;
		return;
	}
	push(b, JSON_TEXT)->text = text;
}

static void add_number(struct build *b)
{
	const unsigned char *from = b->p;
	struct json *value = push(b, JSON_NUMBER);
	const char *text;

	value->number.is_whole = true;
	for (; b->p < b->end && (strchr("+-.eE", *b->p) || isdigit(*b->p)) &&
	     *b->p;
	     b->p++)
		if (*b->p == '.' || (*b->p | 0x20) == 'e')
			value->number.is_whole = false;
	text = keep(b, from, (size_t)(b->p - from));
	if (value->number.is_whole)
		value->number.whole = strtoll(text, NULL, 10);
	value->number.real = value->number.is_whole
	    ? (double)value->number.whole
	    : strtod(text, NULL);
}

static void add_word(struct build *b)
{
	switch (*b->p) {
	case 't':
		push(b, JSON_BOOL)->truth = true;
		b->p += strlen("true");
		break;
	case 'f':
		push(b, JSON_BOOL);
		b->p += strlen("false");
		break;
	default:
		push(b, JSON_NULL);
		b->p += strlen("null");
	}
}

static void open_container(struct build *b)
{
	push(b, *b->p == '{' ? JSON_OBJECT : JSON_ARRAY);
	b->first[b->depth++] = b->count;
	b->p++;
}

static void close_container(struct build *b)
{
	size_t first = b->first[--b->depth];
	size_t count = b->count - first;
	struct json *items = arena_array(b->arena, count, sizeof(*items));

	if (count)
		memcpy(items, b->stack + first, count * sizeof(*items));
	b->stack[first - 1].children.items = items;
	b->stack[first - 1].children.count = count;
	b->count = first;
	b->p++;
}

static void build_step(struct build *b)
{
	switch (*b->p) {
	case '{':
	case '[':
		open_container(b);
		break;
	case '}':
	case ']':
		close_container(b);
		break;
	case '"':
		add_text(b);
		break;
	case 't':
	case 'f':
	case 'n':
		add_word(b);
		break;
	case '-':
	case '0' ... '9':
		add_number(b);
		break;
	default: /* space, comma, colon */
		b->p++;
	}
}

bool json_parse(struct arena *arena, struct bytes text,
    const struct json **value, struct err *err)
{
	struct json *root = ARENA_NEW(arena, struct json);
	struct build b = { .arena = arena };
	struct bytes clean;

	if (text.len >= INT_MAX)
		return err_set(err, ERR_TOO_LARGE, "JSON text too large");
	if (!json_scan(arena, text, &clean, err))
		return false;
	b.p = clean.data;
	b.end = b.p + clean.len;
	/* Each text has a quote, each number a neighbour to spare. */
	b.texts = arena_alloc(arena, clean.len + 1);
	while (b.p < b.end)
		build_step(&b);
	assert(b.count == 1 && b.depth == 0);
	*root = b.stack[0];
	free(b.stack);
	*value = root;
	return true;
}

/* ---- reading ---- */

enum json_type json_type(const struct json *value)
{
	return value ? value->type : JSON_ABSENT;
}

const struct json *json_member(const struct json *value, const char *name)
{
	size_t len = strlen(name);

	if (json_type(value) != JSON_OBJECT)
		return NULL;
	for (size_t i = 0; i < value->children.count; i++) {
		const struct json *member = &value->children.items[i];

		if (member->name_len == len &&
		    memcmp(member->name, name, len) == 0)
			return member;
	}
	return NULL;
}

size_t json_count(const struct json *value)
{
	return json_type(value) == JSON_ARRAY ? value->children.count : 0;
}

const struct json *json_element(const struct json *value, size_t place)
{
	return place < json_count(value) ? &value->children.items[place] : NULL;
}

const char *json_string(const struct json *value)
{
	if (json_type(value) != JSON_TEXT ||
	    (value->text.len &&
		memchr(value->text.data, '\0', value->text.len)))
		return NULL;
	return value->text.data;
}

bool json_number(const struct json *value, double *number)
{
	if (json_type(value) != JSON_NUMBER || !isfinite(value->number.real))
		return false;
	*number = value->number.real;
	return true;
}

bool json_whole(const struct json *value, int64_t *number)
{
	double real;

	/* Integers that a double cannot hold round to at least the bound. */
	if (!json_number(value, &real) || real != trunc(real) ||
	    fabs(real) > WHOLE_MAX)
		return false;
	if (value->number.is_whole && llabs(value->number.whole) > (1LL << 53))
		return false;
	*number = (int64_t)real;
	return true;
}

bool json_truth(const struct json *value)
{
	return json_type(value) == JSON_BOOL && value->truth;
}

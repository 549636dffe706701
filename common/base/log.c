#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/buf.h"
#include "common/base/metrics.h"
#include "common/base/utf8.h"

enum { LINE_MAX_BYTES = 4096, VALUE_MAX_BYTES = 400, LIST_MAX = 8 };

static _Atomic int level_now = LOG_INFO;
static _Atomic int output = STDERR_FILENO;
static const char *daemon_name;
static const char *daemon_instance;
static _Thread_local struct log_scope *scope_now;

static struct metric errors_total = {
	.name = "errors_total",
	.help = "Lines of the log at level error.",
	.type = METRIC_COUNTER,
};

static bool is_plain(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (*text <= ' ' || *text == '"' || *text == '=' ||
		    *text == '\\' || *text == 0x7f)
			return false;
	return true;
}

/* Line separators that are not ASCII: C1 controls, U+2028 and U+2029. */
static unsigned separator(const unsigned char *p)
{
	if (p[0] == 0xc2 && p[1] < 0xa0)
		return p[1];
	if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
		return 0x2000 + p[2] - 0x80;
	return 0;
}

/* One character: as it is, or escaped when it could forge or break a line. */
static size_t put_char(struct buf *line, const unsigned char *p, size_t left)
{
	size_t len = utf8_sequence(p, left);

	if (p[0] == '"' || p[0] == '\\')
		buf_printf(line, "\\%c", p[0]);
	else if (p[0] == '\n')
		buf_text(line, "\\n");
	else if (!len || p[0] < 0x20 || p[0] == 0x7f)
		buf_printf(line, "\\x%02x", p[0]);
	else if (separator(p))
		buf_printf(line, "\\u%04x", separator(p));
	else
		buf_add(line, p, len);
	return len ? len : 1;
}

static void put_text(struct buf *line, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = strlen(text);
	size_t at = 0;

	if (len <= VALUE_MAX_BYTES && is_plain(text)) {
		buf_add(line, text, len);
		return;
	}
	buf_char(line, '"');
	while (at < len && at < VALUE_MAX_BYTES)
		at += put_char(line, p + at, len - at);
	buf_text(line, at < len ? "...\"" : "\"");
}

static void put_item(struct buf *line, const struct val *value, size_t i)
{
	if (value->kind == VAL_TEXTS)
		put_text(line, value->texts[i] ? value->texts[i] : "-");
	else if (value->kind == VAL_BOOLS)
		buf_text(line, value->flags[i] ? "true" : "false");
	else
		buf_int(line, value->numbers[i]);
}

static void put_list(struct buf *line, const struct val *value)
{
	buf_char(line, '[');
	for (size_t i = 0; i < value->count && i < LIST_MAX; i++) {
		if (i)
			buf_char(line, ',');
		put_item(line, value, i);
	}
	buf_text(line, value->count > LIST_MAX ? ",...]" : "]");
}

static void put_value(struct buf *line, const struct val *value)
{
	switch (value->kind) {
	case VAL_END:
	case VAL_NULL:
		buf_char(line, '-');
		break;
	case VAL_ID:
	case VAL_INT:
	case VAL_TIME:
	case VAL_SPAN:
		buf_int(line, value->number);
		break;
	case VAL_BOOL:
		buf_text(line, value->flag ? "true" : "false");
		break;
	case VAL_REAL:
		buf_printf(line, "%.6g", value->real);
		break;
	case VAL_TEXT:
		put_text(line, value->text);
		break;
	case VAL_BYTES:
		/* Bytes may be anything, secrets too. */
		buf_printf(line, "(%zu bytes)", value->bytes.len);
		break;
	case VAL_IDS:
	case VAL_INTS:
	case VAL_TEXTS:
	case VAL_TIMES:
	case VAL_BOOLS:
		put_list(line, value);
		break;
	}
}

static void put_field(struct buf *line, const struct field *field)
{
	if (field->value.kind == VAL_NULL)
		return;
	buf_char(line, ' ');
	buf_text(line, field->name);
	buf_char(line, '=');
	put_value(line, &field->value);
}

static void put_fields(
    struct buf *line, const struct field *fields, size_t count)
{
	/* A field too many is left out whole; the line stays a line. */
	for (size_t i = 0; i < count; i++) {
		size_t len = line->len;

		put_field(line, &fields[i]);
		if (!buf_ok(line)) {
			line->overflow = false;
			line->len = len;
			line->data[len] = '\0';
		}
	}
}

static void put_scopes(struct buf *line, const struct log_scope *scope)
{
	/* Scopes nest as the functions do that open them. */
	if (!scope)
		return;
	put_scopes(line, scope->outer);
	put_fields(line, scope->fields, (size_t)scope->count);
}

void log_level_set(enum log_level level)
{
	atomic_store(&level_now, (int)level);
}

void log_daemon_set(const char *name, const char *instance)
{
	daemon_name = name;
	daemon_instance = instance && *instance ? instance : NULL;
	metrics_register(&errors_total);
}

void log_output_set(int fd)
{
	atomic_store(&output, fd);
}

static void put_head(struct buf *line, enum log_level level, const char *event)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	const struct field head[] = {
		F("daemon", v_text(daemon_name)),
		F("instance", v_text(daemon_instance)),
	};

	buf_printf(line, "level=%s event=%s", names[level], event);
	put_fields(line, head, COUNT(head));
}

/* One write, so that lines of several threads and processes stay whole. */
static void line_write(const struct buf *line)
{
	ssize_t n;

	do
		n = write(atomic_load(&output), line->data, line->len);
	while (n < 0 && errno == EINTR);
}

void log_write(enum log_level level, const char *event,
    const struct field *fields, size_t count)
{
	struct buf line;

	if (level == LOG_ERROR)
		metric_add(&errors_total, 0, 1);
	if ((int)level < atomic_load_explicit(&level_now, memory_order_relaxed))
		return;
	buf_init(&line, NULL, LINE_MAX_BYTES);
	put_head(&line, level, event);
	put_scopes(&line, scope_now);
	put_fields(&line, fields, count);
	line.max++;
	buf_char(&line, '\n');
	line_write(&line);
	buf_done(&line);
}

void log_scope_begin(
    struct log_scope *scope, const struct field *fields, size_t count)
{
	assert(count <= COUNT(scope->fields));
	memcpy(scope->fields, fields, count * sizeof(*fields));
	scope->count = (int)count;
	scope->outer = scope_now;
	scope_now = scope;
}

void log_scope_end(struct log_scope *scope)
{
	assert(scope_now == scope);
	scope_now = scope->outer;
}

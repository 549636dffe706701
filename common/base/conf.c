#include <ctype.h>
#include <errno.h>
#include <glob.h>

#include "common/base/conf.h"
#include "common/base/conf_keys.h"

/* What a reading collects before any of it is applied. */
struct reading {
	const struct conf_key *keys; /* the daemon's own */
	const char **texts;	     /* common keys first, then the own */
	size_t common_count;
	size_t count;
	struct arena *arena;
	struct err *err;
};

/*
 * Texts of settings live as long as the process: they are part of the
 * daemon's config, which lives as long. A reload adds only what changed.
 */
static struct arena *texts_kept;

static size_t count_keys(const struct conf_key *keys)
{
	size_t count = 0;

	while (keys[count].kind != CONF_END)
		count++;
	return count;
}

static const struct conf_key *key_at(const struct reading *r, size_t i)
{
	return i < r->common_count ? &conf_common_keys[i]
				   : &r->keys[i - r->common_count];
}

/* The daemon's own row of a name stands before the common one. */
static bool find_key(const struct reading *r, const char *name, size_t *place)
{
	for (size_t i = r->count; i-- > 0;) {
		if (strcmp(key_at(r, i)->name, name) != 0)
			continue;
		*place = i;
		return true;
	}
	return false;
}

/* ---- sources ---- */

static char *strip(char *text)
{
	char *end = text + strlen(text);

	while (isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

/* A # at the start or behind a space begins a comment. */
static void cut_comment(char *line)
{
	for (char *p = line; (p = strchr(p, '#')) != NULL; p++)
		if (p == line || isspace((unsigned char)p[-1])) {
			*p = '\0';
			return;
		}
}

static bool read_line(struct reading *r, char *line)
{
	struct conf_value value;
	char *equals;
	char *name;
	char *text;
	size_t place;

	cut_comment(line);
	line = strip(line);
	if (!*line)
		return true;
	equals = strchr(line, '=');
	if (!equals)
		return err_set(r->err, ERR_INVALID, "expected key = value");
	*equals = '\0';
	name = strip(line);
	text = strip(equals + 1);
	if (!find_key(r, name, &place))
		return conf_is_name(name) ||
		    err_set(r->err, ERR_INVALID, "unknown setting %s", name);
	if (!conf_value_parse(key_at(r, place), text, &value, r->err))
		return false;
	r->texts[place] = arena_text(r->arena, text);
	return true;
}

static bool read_lines(struct reading *r, FILE *file, const char *path)
{
	char *line = NULL;
	size_t room = 0;
	int number = 0;
	bool ok = true;

	while (ok && getline(&line, &room, file) > 0) {
		number++;
		ok = read_line(r, line);
	}
	free(line);
	if (!ok)
		err_set(r->err, ERR_INVALID, "%s:%d: %s", path, number,
		    arena_text(r->arena, r->err->text));
	return ok;
}

static bool read_file(struct reading *r, const char *path)
{
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file)
		return err_set(r->err, ERR_INVALID, "cannot read %s: %s", path,
		    strerror(errno));
	ok = read_lines(r, file, path);
	fclose(file);
	return ok;
}

static bool read_folder(struct reading *r, const char *file)
{
	const char *slash = strrchr(file, '/');
	int len = slash ? (int)(slash - file) + 1 : 0;
	glob_t found;
	bool ok = true;

	if (glob(arena_printf(r->arena, "%.*sconf.d/*.conf", len, file), 0,
		NULL, &found) != 0)
		return true;
	for (size_t i = 0; ok && i < found.gl_pathc; i++)
		ok = read_file(r, found.gl_pathv[i]);
	globfree(&found);
	return ok;
}

static bool read_environment(struct reading *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct conf_key *key = key_at(r, i);
		char *name = arena_printf(r->arena, "POSTRIDER_%s", key->name);
		struct conf_value value;
		const char *text;

		for (char *p = name; *p; p++)
			*p = (char)toupper((unsigned char)*p);
		text = getenv(name);
		if (!text)
			continue;
		if (!conf_value_parse(key, text, &value, r->err))
			return err_set(r->err, ERR_INVALID, "environment: %s",
			    arena_text(r->arena, r->err->text));
		r->texts[i] = text;
	}
	return true;
}

static bool read_all(struct reading *r, const char *file)
{
	for (size_t i = 0; i < r->count; i++)
		r->texts[i] = key_at(r, i)->fallback;
	if (file && (!read_file(r, file) || !read_folder(r, file)))
		return false;
	if (!read_environment(r))
		return false;
	for (size_t i = 0; i < r->count; i++)
		if (!r->texts[i])
			return err_set(r->err, ERR_INVALID, "%s is not set",
			    key_at(r, i)->name);
	return true;
}

/* ---- applying ---- */

static const char *keep(const char *text)
{
	if (!texts_kept)
		texts_kept = arena_new();
	return arena_text(texts_kept, text);
}

static bool is_same(
    const struct conf_key *key, const void *at, const struct conf_value *value)
{
	if (key->kind == CONF_TEXT)
		return *(const char *const *)at &&
		    strcmp(*(const char *const *)at, value->text) == 0;
	if (key->kind == CONF_BOOL)
		return *(const bool *)at == value->flag;
	return *(const int64_t *)at == value->number;
}

static void store(
    const struct conf_key *key, void *at, const struct conf_value *value)
{
	if (key->kind == CONF_TEXT)
		*(const char **)at = keep(value->text);
	else if (key->kind == CONF_BOOL)
		*(bool *)at = value->flag;
	else
		*(int64_t *)at = value->number;
}

/* A common row that the daemon replaces by its own does not count. */
static bool is_replaced(const struct reading *r, size_t i)
{
	size_t place;

	return find_key(r, key_at(r, i)->name, &place) && place != i;
}

static bool apply(const struct reading *r, void *settings, bool is_reload)
{
	struct conf_value *values =
	    arena_array(r->arena, r->count, sizeof(*values));

	for (size_t i = 0; i < r->count; i++)
		if (!conf_value_parse(
			key_at(r, i), r->texts[i], &values[i], r->err))
			return false;
	for (size_t i = 0; i < r->count; i++) {
		const struct conf_key *key = key_at(r, i);
		void *at = (char *)settings + key->offset;

		if (is_replaced(r, i))
			continue;
		if (is_reload && is_same(key, at, &values[i]))
			continue;
		if (!is_reload || key->when == LIVE)
			store(key, at, &values[i]);
		else
			log_warn("config.needs_restart",
			    F("key", v_text(key->name)));
	}
	return true;
}

static bool load(const struct conf_key *keys, void *settings, const char *file,
    bool is_reload, struct err *err)
{
	struct arena *arena = arena_new();
	struct reading r = {
		.keys = keys,
		.common_count = count_keys(conf_common_keys),
		.count = count_keys(conf_common_keys) + count_keys(keys),
		.arena = arena,
		.err = err,
	};
	bool ok;

	r.texts = arena_array(arena, r.count, sizeof(*r.texts));
	ok = read_all(&r, file) && apply(&r, settings, is_reload);
	arena_free(&arena);
	return ok;
}

bool conf_load(const struct conf_key *keys, void *settings, const char *file,
    struct err *err)
{
	return load(keys, settings, file, false, err);
}

bool conf_reload(const struct conf_key *keys, void *settings, const char *file,
    struct err *err)
{
	return load(keys, settings, file, true, err);
}

/* ---- help ---- */

static void help_key(const struct conf_key *key, struct buf *out)
{
	buf_printf(out, "%s = %s\n        %s", key->name,
	    key->fallback ? key->fallback : "(must be set)", key->help);
	if (key->min && key->kind == CONF_TEXT)
		buf_printf(out, " One of: %s.", key->min);
	else if (key->min && key->max)
		buf_printf(out, " From %s to %s.", key->min, key->max);
	else if (key->min)
		buf_printf(out, " At least %s.", key->min);
	else if (key->max)
		buf_printf(out, " At most %s.", key->max);
	buf_text(out, key->when == BOOT ? " Needs a restart.\n\n" : "\n\n");
}

void conf_help(const struct conf_key *keys, struct buf *out)
{
	struct reading r = {
		.keys = keys,
		.common_count = count_keys(conf_common_keys),
		.count = count_keys(conf_common_keys) + count_keys(keys),
	};

	for (size_t i = 0; i < r.count; i++)
		if (!is_replaced(&r, i))
			help_key(key_at(&r, i), out);
}

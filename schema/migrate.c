#include <dirent.h>
#include <errno.h>
#include <stdarg.h>

#include "schema/migrate.h"
#include "schema/migrate.sql.h"

enum { FILE_MAX = 4 << 20, MIGRATIONS_MAX = 1000 };

struct applied {
	int64_t number;
	const char *name;
	const char *checksum;
	int64_t applied_at;
};

struct recorded {
	bool recorded;
};

struct checksum {
	const char *checksum;
};

static const struct shape applied_shape[] = {
	SHAPE(INT, struct applied, number, NULL),
	SHAPE(TEXT, struct applied, name, NULL),
	SHAPE(TEXT, struct applied, checksum, NULL),
	SHAPE(TIME, struct applied, applied_at, NULL),
	SHAPE_END(struct applied),
};

static const struct shape recorded_shape[] = {
	SHAPE(BOOL, struct recorded, recorded, NULL),
	SHAPE_END(struct recorded),
};

static const struct shape checksum_shape[] = {
	SHAPE(TEXT, struct checksum, checksum, NULL),
	SHAPE_END(struct checksum),
};

PRINTF(2, 3)
static void say(const struct migrate *migrate, const char *format, ...)
{
	char line[240];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (migrate->report)
		migrate->report(migrate->arg, line);
}

/* ---- the files ---- */

static bool file_read(
    struct arena *arena, const char *path, const char **text, struct err *err)
{
	FILE *file = fopen(path, "re");
	struct buf buf;
	char part[8192];
	size_t len;

	if (!file)
		return err_set(
		    err, ERR_ABSENT, "%s: %s", path, strerror(errno));
	buf_init(&buf, arena, FILE_MAX);
	while ((len = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&buf, part, len);
	fclose(file);
	if (!buf_ok(&buf) || buf.len == 0)
		return err_set(
		    err, ERR_INVALID, "%s: empty or too large", path);
	*text = buf.data;
	return true;
}

static int is_migration(const struct dirent *entry)
{
	const char *name = entry->d_name;
	size_t len = strlen(name);

	return strspn(name, "0123456789") == 4 && name[4] == '_' && len > 12 &&
	    strcmp(name + len - 7, ".up.sql") == 0;
}

static bool migration_read(const struct migrate *migrate, const char *file,
    struct migration *migration, struct err *err)
{
	struct arena *arena = migrate->arena;
	const char *base = arena_textn(arena, file, strlen(file) - 7);
	const char *dir = migrate->dir;

	migration->number = strtoll(file, NULL, 10);
	migration->name = base + 5;
	return file_read(arena, arena_printf(arena, "%s/%s.up.sql", dir, base),
		   &migration->up, err) &&
	    file_read(arena, arena_printf(arena, "%s/%s.down.sql", dir, base),
		&migration->down, err);
}

static void names_free(struct dirent **names, int count)
{
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static bool files_read(
    const struct migrate *migrate, struct rows *rows, struct err *err)
{
	struct dirent **names = NULL;
	int count = scandir(migrate->dir, &names, is_migration, alphasort);
	struct migration *items;
	bool good = true;

	if (count <= 0 || count > MIGRATIONS_MAX) {
		names_free(names, count);
		return err_set(
		    err, ERR_ABSENT, "no migrations in %s", migrate->dir);
	}
	items = arena_array(migrate->arena, (size_t)count, sizeof(*items));
	for (int i = 0; i < count && good; i++) {
		good =
		    migration_read(migrate, names[i]->d_name, &items[i], err);
		if (good && items[i].number != i + 1)
			good = err_set(err, ERR_INVALID,
			    "migration %d is missing in %s", i + 1,
			    migrate->dir);
	}
	names_free(names, count);
	*rows = (struct rows){ items, (size_t)count };
	return good;
}

/* ---- files and database side by side ---- */

static bool checksums_fill(
    struct tx *tx, const struct rows *rows, struct err *err)
{
	struct migration *items = rows->items;
	struct checksum row = { 0 };

	for (size_t i = 0; i < rows->count; i++) {
		if (!sql_one(tx, &SQL_migrate_checksum, checksum_shape, &row,
			err, v_text(items[i].up)))
			return false;
		items[i].checksum = row.checksum;
	}
	return true;
}

static void applied_fill(const struct rows *applied, struct rows *rows)
{
	const struct applied *row = applied->items;
	struct migration *items = rows->items;

	for (size_t i = 0; i < applied->count; i++) {
		size_t place = (size_t)row[i].number - 1;

		if (row[i].number < 1 || place >= rows->count)
			continue;
		items[place].applied_at = row[i].applied_at;
		items[place].applied_checksum = row[i].checksum;
	}
}

static bool status_read(
    struct tx *tx, struct rows *rows, int64_t *newest, struct err *err)
{
	struct recorded recorded = { 0 };
	struct rows applied = { 0 };
	const struct applied *last;

	if (!sql_one(tx, &SQL_migrate_recorded, recorded_shape, &recorded, err))
		return false;
	*newest = 0;
	if (recorded.recorded &&
	    !sql_many(tx, &SQL_migrate_applied, applied_shape, &applied, err))
		return false;
	if (applied.count) {
		last = (const struct applied *)applied.items;
		*newest = last[applied.count - 1].number;
	}
	applied_fill(&applied, rows);
	return checksums_fill(tx, rows, err);
}

bool migrate_status(const struct migrate *migrate, struct rows *rows,
    int64_t *newest, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(migrate->conn, migrate->arena);

	return files_read(migrate, rows, err) &&
	    status_read(tx, rows, newest, err);
}

/* What was applied must be what the files say. */
static bool unchanged_check(
    const struct rows *rows, int64_t newest, struct err *err)
{
	const struct migration *items = rows->items;

	if (newest > (int64_t)rows->count)
		return err_set(err, ERR_CONFLICT,
		    "the database has migration %" PRId64
		    ", the files end at %zu",
		    newest, rows->count);
	for (int64_t i = 0; i < newest; i++) {
		if (!items[i].applied_at)
			return err_set(err, ERR_CONFLICT,
			    "migration %" PRId64 " was left out", i + 1);
		if (strcmp(items[i].applied_checksum, items[i].checksum) != 0)
			return err_set(err, ERR_CONFLICT,
			    "migration %" PRId64 " (%s) has changed since it "
			    "was applied",
			    i + 1, items[i].name);
	}
	return true;
}

/* ---- steps ---- */

static bool lock(struct tx *tx, struct err *err)
{
	if (sql_many(tx, &SQL_migrate_lock, NULL, NULL, err))
		return true;
	if (strcmp(err->text, "") != 0 && err->code == ERR_BUSY)
		err_set(err, ERR_BUSY, "is another migration running? %s",
		    err->text);
	return false;
}

static bool step_failed(
    const char *verb, const struct migration *migration, struct err *err)
{
	return err_set(err, err->code, "%s %" PRId64 " (%s): %s", verb,
	    migration->number, migration->name, err->text);
}

static bool up_run(struct tx *tx, struct conn *conn,
    const struct migration *migration, struct err *err)
{
	bool good = conn_script(conn, migration->up, err) &&
	    sql_none(tx, &SQL_migrate_record, err, v_int(migration->number),
		v_text(migration->name), v_text(migration->checksum)) &&
	    tx_commit(tx, err);

	return good || step_failed("migration", migration, err);
}

static bool down_run(struct tx *tx, struct conn *conn,
    const struct migration *migration, struct err *err)
{
	bool good = conn_script(conn, migration->down, err) &&
	    sql_none(tx, &SQL_migrate_forget, err, v_int(migration->number)) &&
	    (migration->number > 1 ||
		sql_none(tx, &SQL_migrate_table_gone, err)) &&
	    tx_commit(tx, err);

	return good || step_failed("taking back", migration, err);
}

/* Under the lock: what is applied now. */
static bool look_again(
    struct tx *tx, struct rows *rows, int64_t *newest, struct err *err)
{
	return lock(tx, err) && status_read(tx, rows, newest, err) &&
	    unchanged_check(rows, *newest, err);
}

static bool up_step(const struct migrate *migrate, struct rows *rows,
    int64_t to, bool *done, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(migrate->conn, migrate->arena);
	const struct migration *items = rows->items;
	int64_t newest;

	if (!lock(tx, err) || !sql_none(tx, &SQL_migrate_table, err) ||
	    !look_again(tx, rows, &newest, err))
		return false;
	*done = newest >= to;
	if (*done)
		return true;
	assert(items);
	if (!up_run(tx, migrate->conn, &items[newest], err))
		return false;
	say(migrate, "applied %04" PRId64 " %s", items[newest].number,
	    items[newest].name);
	return true;
}

static bool down_step(const struct migrate *migrate, struct rows *rows,
    int64_t to, bool *done, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(migrate->conn, migrate->arena);
	const struct migration *items = rows->items;
	int64_t newest;

	if (!look_again(tx, rows, &newest, err))
		return false;
	*done = newest <= to;
	if (*done)
		return true;
	assert(items);
	if (!down_run(tx, migrate->conn, &items[newest - 1], err))
		return false;
	say(migrate, "took back %04" PRId64 " %s", newest,
	    items[newest - 1].name);
	return true;
}

static bool plan(
    const struct migrate *migrate, bool up, int64_t to, struct err *err)
{
	struct rows rows = { 0 };
	const struct migration *items;
	int64_t newest;

	if (!migrate_status(migrate, &rows, &newest, err) ||
	    !unchanged_check(&rows, newest, err))
		return false;
	items = rows.items;
	assert(items);
	for (int64_t i = newest; up && i < to; i++)
		say(migrate, "would apply %04" PRId64 " %s", items[i].number,
		    items[i].name);
	for (int64_t i = newest; !up && i > to; i--)
		say(migrate, "would take back %04" PRId64 " %s", i,
		    items[i - 1].name);
	return true;
}

static bool target_check(const struct rows *rows, int64_t to, struct err *err)
{
	if (to >= 0 && to <= (int64_t)rows->count)
		return true;
	return err_set(err, ERR_INVALID, "there is no migration %" PRId64, to);
}

static bool steps(
    const struct migrate *migrate, bool up, int64_t to, struct err *err)
{
	struct rows rows = { 0 };
	bool done = false;
	bool good;

	if (!files_read(migrate, &rows, err) || !target_check(&rows, to, err))
		return false;
	if (up && to == 0)
		to = (int64_t)rows.count;
	if (migrate->dry_run)
		return plan(migrate, up, to, err);
	do {
		good = up ? up_step(migrate, &rows, to, &done, err)
			  : down_step(migrate, &rows, to, &done, err);
	} while (good && !done);
	return good;
}

bool migrate_up(const struct migrate *migrate, int64_t to, struct err *err)
{
	return steps(migrate, true, to, err);
}

bool migrate_down(const struct migrate *migrate, int64_t to, struct err *err)
{
	return steps(migrate, false, to, err);
}

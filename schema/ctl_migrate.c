#include <time.h>

#include "schema/ctl.h"
#include "schema/migrate.h"

static void print_line(UNUSED void *arg, const char *line)
{
	puts(line);
}

static void print_time(int64_t ms)
{
	time_t at = (time_t)(ms / 1000);
	struct tm parts;
	char text[32];

	gmtime_r(&at, &parts);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &parts);
	printf("applied %s UTC", text);
}

static void print_migration(const struct migration *migration)
{
	printf("%04" PRId64 " %-12s ", migration->number, migration->name);
	if (!migration->applied_at) {
		puts("not applied");
		return;
	}
	print_time(migration->applied_at);
	if (strcmp(migration->checksum, migration->applied_checksum) != 0)
		printf(", FILE HAS CHANGED SINCE");
	putchar('\n');
}

static bool status(const struct migrate *migrate, struct err *err)
{
	const struct migration *items;
	struct rows rows = { 0 };
	int64_t newest = 0;

	if (!migrate_status(migrate, &rows, &newest, err))
		return false;
	items = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		print_migration(&items[i]);
	if (newest > (int64_t)rows.count)
		printf("the database has %" PRId64 ", newer than these files\n",
		    newest);
	return true;
}

static bool number_of(const char *text, int64_t *number, struct err *err)
{
	char *end;

	if (!text)
		return true;
	*number = strtoll(text, &end, 10);
	return (*text && !*end && *number >= 0) ||
	    err_set(err, ERR_INVALID, "--to takes a number, not %s", text);
}

/* Down takes back one, unless --to says how far. */
static bool down(const struct migrate *migrate, const char *to, int64_t number,
    struct err *err)
{
	struct rows rows = { 0 };
	int64_t newest = 0;

	if (to)
		return migrate_down(migrate, number, err);
	if (!migrate_status(migrate, &rows, &newest, err))
		return false;
	return newest == 0 || migrate_down(migrate, newest - 1, err);
}

static bool run(const struct migrate *migrate, const struct ctl *ctl,
    const char *what, struct err *err)
{
	int64_t to = 0;

	if (!number_of(ctl->to, &to, err))
		return false;
	if (strcmp(what, "status") == 0)
		return status(migrate, err);
	if (strcmp(what, "up") == 0)
		return migrate_up(migrate, to, err);
	if (strcmp(what, "down") == 0)
		return down(migrate, ctl->to, to, err);
	return err_set(err, ERR_INVALID, "migrate up, down or status?");
}

int ctl_migrate(struct ctl *ctl)
{
	AUTO(conn_free) struct conn *conn = ctl_connect(ctl->database);
	const struct migrate migrate = { .conn = conn,
		.arena = ctl->arena,
		.dir = ctl->schema_dir,
		.dry_run = ctl->dry_run,
		.report = print_line };
	struct err err = { 0 };

	if (!run(&migrate, ctl, ctl->words > 1 ? ctl->word[1] : "", &err))
		return ctl_fail(&err);
	return 0;
}

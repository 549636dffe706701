#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <criterion/hooks.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_run.h"

enum { DEPTH_MAX = 8 };

ReportHook(PRE_ALL)(struct criterion_test_set *tests UNUSED)
{
	char dir[] = "/tmp/postrider-run-XXXXXX";
	char run[24];

	if (!mkdtemp(dir))
		abort();
	snprintf(run, sizeof(run), "%d", (int)getpid());
	setenv(TEST_RUN, run, 1);
	setenv(TEST_RUN_DIR, dir, 1);
}

static int remove_one(const char *path, const struct stat *status UNUSED,
    int type UNUSED, struct FTW *place UNUSED)
{
	return remove(path);
}

/* What is expected while a test is torn down counts as well; Criterion knows
 * a test as passed by then. */
static void count_torn_down(struct criterion_global_stats *stats)
{
	if (!stats->asserts_failed || stats->tests_failed)
		return;
	fputs("an assertion failed while a test was torn down\n", stderr);
	stats->tests_failed++;
	stats->tests_passed--;
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
	count_torn_down(stats);
	nftw(getenv(TEST_RUN_DIR), remove_one, DEPTH_MAX, FTW_DEPTH | FTW_PHYS);
	if (test_db_available())
		test_db_drop_run(getenv(TEST_RUN));
}

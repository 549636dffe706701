#include <criterion/criterion.h>

#include "tests/integration/delivery_site.h"

enum { SOON_MS = 8000 };

TestSuite(janitor, .timeout = 60);

/* How many sessions hold the lock of the leader. */
#define LEADERS \
	"(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND " \
	"granted AND database = (SELECT oid FROM pg_database WHERE datname = " \
	"current_database()) AND classid = 1 AND objid = 2941871708)"

/* ---- leading ---- */

Test(janitor, of_two_one_leads_and_the_other_follows_a_kill_in_five_seconds)
{
	struct site site;
	struct test_daemon *first;
	struct test_daemon *second;

	test_db_needed();
	site = site_begin();
	first = test_janitord(site.node, NULL);
	cr_assert(test_daemon_logged(
	    first, "leader.changed daemon=janitord leads=true", SOON_MS));
	second = test_janitord(site.node, NULL);
	cr_expect_not(test_daemon_logged(second, "leader.changed", 2500));
	cr_expect_eq(site_number(&site, "SELECT " LEADERS " AS n"), 1);
	test_daemon_kill(first);
	cr_expect(test_daemon_logged(
	    second, "leader.changed daemon=janitord leads=true", 5000));
	site_end(&site);
}

#include "tests/integration/janitor_site.h"

#include <criterion/criterion.h>

struct site janitor;

void janitor_begin(void)
{
	test_db_needed();
	janitor = site_begin();
}

void janitor_end(void)
{
	if (janitor.node)
		site_end(&janitor);
}

void janitor_sql(const char *script)
{
	test_db_script(janitor.db, script);
}

int64_t janitor_count(const char *from)
{
	return site_number(&janitor,
	    arena_printf(janitor.arena, "SELECT count(*) AS n FROM %s", from));
}

bool janitor_soon(const char *condition)
{
	return site_until(&janitor, condition, SOON_MS);
}

bool janitor_leads(const struct test_daemon *janitord, int ms)
{
	return test_daemon_logged(
	    janitord, "event=leader.changed daemon=janitord leads=true", ms);
}

int64_t janitor_failing_peer(struct test_peer *peer, const char *status)
{
	int64_t id = site_peer(&janitor, test_peer_origin(peer));

	janitor_sql(arena_printf(janitor.arena,
	    "UPDATE federation_peers SET status = '%s', transport_failures = "
	    "10, last_failure_at = now() - interval '2 hours', next_attempt_at "
	    "= now() + interval '1 day' WHERE id = %" PRId64,
	    status, id));
	return id;
}

/*
 * bench_memory -- resident memory of each daemon that has nothing to do, a
 * second after it is ready, held against 12 MB.
 */
#include <unistd.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_node.h"

enum { IDLE_S = 1, LIMIT_MB = 12 };

static void print(const char *name, const struct test_daemon *daemon)
{
	printf("figure=idle_memory_%s value=%.1f unit=MB limit=%d\n", name,
	    (double)test_daemon_rss_kb(daemon) / 1024, LIMIT_MB);
}

int main(void)
{
	struct test_daemon *daemons[3];
	struct test_node *node;

	if (!test_db_available()) {
		fprintf(stderr, "bench_memory: POSTRIDER_TEST_DB is not set\n");
		return 1;
	}
	node = test_node_new("nova.localhost");
	daemons[0] = test_frontd(node, NULL);
	daemons[1] = test_outboxd(node, NULL);
	daemons[2] = test_janitord(node, NULL);
	sleep(IDLE_S);
	print("frontd", daemons[0]);
	print("outboxd", daemons[1]);
	print("janitord", daemons[2]);
	test_node_free(&node);
	return 0;
}

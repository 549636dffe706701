/*
 * A peer that has just taken something stays leased for a second, so that its
 * next message needs no claim.
 */
#include <criterion/criterion.h>

#include "tests/integration/delivery_site.h"

enum { SOON_MS = 10000, TRIES = 20, PEERS = 4 };

TestSuite(delivery_warm, .timeout = 300);

struct scene {
	struct site site;
	struct test_peer *server;
	int64_t peers[PEERS];
	struct test_daemon *outboxd;
};

static struct scene scene_begin(const char *setting)
{
	const char **settings;
	struct scene scene = { .site = site_begin() };
	struct arena *arena = scene.site.arena;

	settings = arena_array(arena, 2, sizeof(*settings));
	settings[0] = setting;
	scene.server = test_peer_new("orbit.localhost", NULL, NULL);
	for (int i = 0; i < PEERS; i++)
		scene.peers[i] = site_peer(&scene.site,
		    arena_printf(arena, "http://p%d.localhost:%d", i,
			test_peer_port(scene.server)));
	scene.outboxd = test_outboxd(scene.site.node, settings);
	return scene;
}

static void scene_end(struct scene *scene)
{
	test_daemon_kill(scene->outboxd);
	test_peer_free(&scene->server);
	site_end(&scene->site);
}

/* One more message to a peer, which has it in the end. */
static void send_one(struct scene *scene, int64_t peer)
{
	size_t before = test_peer_count(scene->server, RELAY_PATH);

	site_enqueue(&scene->site, peer,
	    ENTRIES(arena_printf(scene->site.arena, "create m%zu", before)));
	cr_assert(
	    test_peer_got(scene->server, RELAY_PATH, before + 1, SOON_MS));
}

/* Two messages one after the other, under one lease? A slow machine may take
 * longer than it is kept. */
static bool same_lease(struct scene *scene)
{
	send_one(scene, scene->peers[0]);
	test_db_script(scene->site.db,
	    "DROP TABLE IF EXISTS noted; CREATE TABLE noted AS"
	    " SELECT lease_token FROM federation_peers"
	    " WHERE lease_token IS NOT NULL");
	send_one(scene, scene->peers[0]);
	return site_number(&scene->site,
		   "SELECT count(*) AS n FROM federation_peers JOIN noted"
		   " USING (lease_token)") == 1;
}

Test(delivery_warm, who_writes_on_needs_no_claim)
{
	struct scene scene;
	bool kept = false;

	test_db_needed();
	scene = scene_begin(NULL);
	for (int i = 0; i < TRIES && !kept; i++)
		kept = same_lease(&scene);
	cr_expect(kept);
	/* Then it is given back. */
	cr_expect(site_drained(&scene.site, SOON_MS));
	scene_end(&scene);
}

Test(delivery_warm, who_has_nothing_takes_no_room)
{
	struct scene scene;
	bool more = false;

	test_db_needed();
	scene = scene_begin("peers_max=2");
	for (int i = 0; i < TRIES && !more; i++) {
		send_one(&scene, scene.peers[i % PEERS]);
		more = site_number(&scene.site,
			   "SELECT count(lease_worker) AS n"
			   " FROM federation_peers") > 2;
	}
	cr_expect(more);
	cr_expect(site_drained(&scene.site, SOON_MS));
	scene_end(&scene);
}

Test(delivery_warm, an_operator_need_not_wait)
{
	struct scene scene;

	test_db_needed();
	scene = scene_begin(NULL);
	send_one(&scene, scene.peers[0]);
	test_db_script(scene.site.db,
	    "SELECT ops.peer_pause(origin, 'a test', '1 hour')"
	    " FROM federation_peers");
	cr_expect(site_until(&scene.site,
	    "NOT EXISTS (SELECT FROM federation_peers"
	    " WHERE lease_worker IS NOT NULL)",
	    SOON_MS));
	site_enqueue(&scene.site, scene.peers[0], ENTRIES("create late"));
	test_db_script(scene.site.db,
	    "SELECT ops.peer_resume(origin, 'a test') FROM federation_peers");
	cr_expect(test_peer_got(scene.server, RELAY_PATH, 2, SOON_MS));
	scene_end(&scene);
}

/* Crowds, slow ones and half-sent things: everybody else is served on. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/integration/hostile_site.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_peer.h"

static struct hostile site;

static void end(void)
{
	if (site.world)
		hostile_end(&site);
}

TestSuite(hostile_load, .fini = end, .timeout = 300);

static void begin(const char *const *settings)
{
	site = hostile_begin(settings);
}

/* Asks for something simple; how long the answer took. */
static int64_t served_ms(void)
{
	int64_t ms = clock_steady_ms();
	struct test_reply reply =
	    test_get(site.arena, site.port, "/api/health", NULL);

	cr_expect_eq(reply.status, 200);
	return clock_steady_ms() - ms;
}

static bool has_ended(int fd)
{
	char bytes[4096];
	ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0)
		return has_ended(fd);
	return got == 0 || (errno != EAGAIN && errno != EINTR);
}

/* ---- 1.2 ---- */

enum { SLOW_HEADS = 200, SLOW_BODIES = 50, SLOW = SLOW_HEADS + SLOW_BODIES };

static const char slow_head[] = "GET /api/health HTTP/1.1\r\nX-Slow: ";
static const char slow_body[] =
    "POST /api/federation/relay HTTP/1.1\r\nHost: x\r\n"
    "Content-Type: application/json\r\nContent-Length: 5000000\r\n\r\n";

/* A byte for each that is still there; how many are. */
static int drip(int *fds)
{
	int left = 0;

	for (int i = 0; i < SLOW; i++) {
		if (fds[i] < 0)
			continue;
		if (has_ended(fds[i]) || !test_http_write(fds[i], "x", 1)) {
			close(fds[i]);
			fds[i] = -1;
			continue;
		}
		left++;
	}
	return left;
}

Test(hostile_load, slow_ones_are_dropped_while_others_are_served)
{
	static const char *const settings[] = { "head_deadline=3s",
		"body_deadline=3s", "connections_per_address_max=1000", NULL };
	int64_t until_ms = clock_steady_ms() + 60000;
	int64_t longest_ms = 0;
	int64_t usual_ms;
	int fds[SLOW];
	int left = SLOW;

	test_db_needed();
	begin(settings);
	usual_ms = served_ms();
	for (int i = 0; i < SLOW; i++) {
		const char *text = i < SLOW_HEADS ? slow_head : slow_body;

		fds[i] = test_http_connect(site.port);
		cr_assert(test_http_write(fds[i], text, strlen(text)));
	}
	while (left && clock_steady_ms() < until_ms) {
		int64_t ms = served_ms();

		longest_ms = ms > longest_ms ? ms : longest_ms;
		left = drip(fds);
		poll(NULL, 0, 100);
	}
	cr_expect_eq(left, 0, "%d are still there", left);
	cr_expect_lt(
	    longest_ms, 1000 + 10 * usual_ms, "%" PRId64 " ms", longest_ms);
}

/* ---- 1.3 ---- */

static int64_t cpu_ms(const struct test_daemon *daemon)
{
	char path[64];
	unsigned long user = 0, system = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)daemon->pid);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	cr_expect_eq(fscanf(file,
			 "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u "
			 "%*u %lu %lu",
			 &user, &system),
	    2);
	fclose(file);
	return (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

Test(hostile_load, without_descriptors_it_rests_and_recovers)
{
	enum { IDLE = 300 };
	static const char *const settings[] = {
		"connections_per_address_max=1000", "workers=2", NULL
	};
	const struct rlimit few = { 128, 128 };
	struct test_daemon *crowded;
	int fds[IDLE];
	int64_t cpu;

	test_db_needed();
	begin(NULL);
	crowded = test_frontd_start_only(site.world->node, settings);
	cr_assert_eq(prlimit(crowded->pid, RLIMIT_NOFILE, &few, NULL), 0);
	cr_assert(test_daemon_says(crowded, "READY=1", TEST_READY_MS));
	for (int i = 0; i < IDLE; i++)
		fds[i] = test_http_connect(crowded->port);
	cr_assert(test_daemon_logged(crowded, "level=warn", 5000));
	cpu = cpu_ms(crowded);
	poll(NULL, 0, 1000);
	cr_expect_lt(cpu_ms(crowded) - cpu, 500, "the listener spins");
	for (int i = 0; i < IDLE; i++)
		close(fds[i]);
	cr_expect_eq(
	    test_get(site.arena, crowded->port, "/api/health", NULL).status,
	    200);
}

/* ---- 1.4 ---- */

static int offer_from(const char *forwarded_for)
{
	return test_http(site.arena, site.port,
	    &(struct test_request){ .method = "POST",
		.path = HOSTILE_ACCEPT,
		.body = "{\"sourceOrigin\":\"x\",\"hmacSecret\":\"s\"}",
		.headers = arena_printf(
		    site.arena, "X-Forwarded-For: %s\r\n", forwarded_for) })
	    .status;
}

static const char *invented_hop(int number)
{
	return arena_printf(site.arena, "10.9.8.%d, 198.51.100.7", number);
}

Test(hostile_load, an_invented_address_buys_no_offer)
{
	static const char *const settings[] = { "rate_limits=on",
		"trusted_proxies=192.0.2.1", NULL };

	test_db_needed();
	begin(settings);
	for (int i = 0; i < 9; i++)
		cr_expect_eq(offer_from(i % 2 ? "192.0.2.1" : "10.0.0.1"), 400);
	cr_expect_eq(offer_from("198.51.100.7"), 429);
}

Test(hostile_load, behind_a_proxy_invented_hops_buy_no_offer)
{
	static const char *const settings[] = { "rate_limits=on",
		"trusted_proxies=127.0.0.1", NULL };

	test_db_needed();
	begin(settings);
	for (int i = 0; i < 15; i++)
		cr_expect_eq(
		    offer_from(invented_hop(i + 1)), i < 10 ? 400 : 429);
	cr_expect_eq(
	    offer_from("198.51.100.8"), 400, "another is not locked out");
}

/* ---- 1.12 ---- */

Test(hostile_load, a_crowd_at_the_door_costs_bounded_memory)
{
	enum { CROWD = 300 };
	static const char *const settings[] = { "password_memory=19MB",
		"password_ops=2", "password_slots=2",
		"connections_per_address_max=1000", "workers=8", NULL };
	static const char body[] =
	    "{\"username\":\"admin\",\"password\":\"wrong-horse\"}";
	const char *request;
	int64_t before_kb, most_kb = 0;
	int fds[CROWD];

	test_db_needed();
	begin(settings);
	request = arena_printf(site.arena,
	    "POST /api/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	    strlen(body), body);
	before_kb = test_daemon_rss_kb(site.world->frontd);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = test_http_connect(site.port);
		cr_assert(test_http_write(fds[i], request, strlen(request)));
		if (i % 2)
			close(fds[i]);
	}
	cr_expect_lt(served_ms(), 10000);
	for (int i = 0; i < CROWD; i += 2) {
		int status = test_http_read(site.arena, fds[i]).status;
		int64_t now_kb = test_daemon_rss_kb(site.world->frontd);

		most_kb = now_kb > most_kb ? now_kb : most_kb;
		cr_expect(status == 401 || status == 429 || status == 503, "%d",
		    status);
		close(fds[i]);
	}
	cr_expect_lt(most_kb - before_kb, 96 * 1024, "%" PRId64 " kB",
	    most_kb - before_kb);
}

/* ---- 3.14 ---- */

static const char whole[] =
    "SELECT CASE WHEN concat_ws(' ',"
    " (SELECT count(*) FROM dm_messages WHERE content = 'doomed'),"
    " (SELECT count(*) FROM attachments),"
    " (SELECT count(*) FROM dm_reactions),"
    " (SELECT count(*) FROM conversation_events"
    "   WHERE kind = 'message_deleted'),"
    " (SELECT count(*) FROM federation_outbox"
    "   WHERE event_type = 'delete'))"
    " IN ('1 3 2 0 0', '0 0 0 1 1') THEN 1 ELSE 0 END";

static const char *doomed_message(const char *channel)
{
	struct test_reply reply = test_post(site.arena, site.port,
	    arena_printf(site.arena, "/api/dm/%s/messages", channel),
	    site.world->token, "{\"content\":\"doomed\"}");
	const char *id = test_text(site.arena, &reply, "id");

	cr_assert_not_null(id, "%d %s", reply.status, reply.body);
	world_sql(site.world,
	    "INSERT INTO attachments (dm_message_id, filename, original_name,"
	    " mimetype, size) SELECT %s, 'f' || n, 'f', 't/p', 1"
	    " FROM generate_series(1, 3) n;"
	    "INSERT INTO dm_reactions (dm_message_id, user_id, emoji)"
	    " SELECT %s, id, 'x' FROM users",
	    id, id);
	return id;
}

static void delete_and_kill(const char *id, int after_us)
{
	const char *request = arena_printf(site.arena,
	    "DELETE /api/dm/messages/%s HTTP/1.1\r\nHost: x\r\n"
	    "Authorization: Bearer %s\r\n\r\n",
	    id, site.world->token);
	int fd = test_http_connect(site.port);

	cr_assert(test_http_write(fd, request, strlen(request)));
	usleep((useconds_t)after_us);
	test_daemon_kill(site.world->frontd);
	close(fd);
}

/* Sessions of a killed process may still be at work. */
static const char quiet[] =
    "SELECT NOT EXISTS (SELECT FROM pg_stat_activity"
    " WHERE datname = current_database() AND usename = 'postrider_frontd')"
    " AS b";

Test(hostile_load, a_killed_delete_is_whole_or_nothing, .timeout = 300)
{
	enum { ROUNDS = 20 };
	const char *db;
	struct test_reply reply;
	const char *channel;

	test_db_needed();
	begin(NULL);
	db = site.world->node->database;
	test_daemon_stop(site.world->outboxd);
	reply = test_post(site.arena, site.port, "/api/dm", site.world->token,
	    "{\"homeUserId\":\"700\",\"homeInstance\":\"luna.localhost\"}");
	channel = test_text(site.arena, &reply, "id");
	cr_assert_not_null(channel, "%d %s", reply.status, reply.body);
	for (int i = 0; i < ROUNDS; i++) {
		delete_and_kill(doomed_message(channel), i * 700);
		cr_assert(test_db_until(db, quiet, 10000));
		cr_expect_eq(hostile_number(&site, whole), 1, "round %d", i);
		world_sql(site.world,
		    "DELETE FROM dm_messages; DELETE FROM federation_outbox;"
		    "DELETE FROM conversation_events");
		test_daemon_again(site.world->frontd);
	}
}

/* ---- 3.1 ---- */

static struct test_peer *peer_of(const char *host)
{
	struct test_peer *peer = test_peer_new(host, NULL, NULL);

	cr_assert_eq(
	    world_accept(site.world, test_peer_origin(peer), "s").status, 200);
	return peer;
}

static void write_to(const char *person, const char *host)
{
	struct test_reply reply =
	    test_post(site.arena, site.port, "/api/dm", site.world->token,
		arena_printf(site.arena,
		    "{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"}", person,
		    host));
	const char *channel = test_text(site.arena, &reply, "id");

	cr_assert_not_null(channel, "%d %s", reply.status, reply.body);
	reply = test_post(site.arena, site.port,
	    arena_printf(site.arena, "/api/dm/%s/messages", channel),
	    site.world->token, "{\"content\":\"private\"}");
	cr_expect_eq(reply.status, 201, "%s", reply.body);
}

Test(hostile_load, only_the_peer_concerned_hears_of_a_message)
{
	struct test_peer *peers[3];

	test_db_needed();
	begin(NULL);
	peers[0] = peer_of("one.localhost");
	peers[1] = peer_of("two.localhost");
	peers[2] = peer_of("three.localhost");
	write_to("700", "one.localhost");
	cr_expect(test_peer_got(peers[0], HOSTILE_RELAY, 1, 10000));
	write_to("800", "nobody-knows.localhost");
	cr_expect_eq(hostile_number(&site,
			 "SELECT count(*) FROM federation_outbox o"
			 " JOIN federation_peers p ON p.id = o.peer_id"
			 " WHERE p.host <> 'one.localhost'"),
	    0);
	cr_expect_str_eq(test_db_text(site.arena, site.world->node->database,
			     "SELECT state AS t FROM ops.peers"
			     " WHERE peer = 'nobody-knows.localhost'"),
	    "no peer");
	/* A second message to the first shows that nothing else came before. */
	write_to("700", "one.localhost");
	cr_expect(test_peer_got(peers[0], HOSTILE_RELAY, 2, 10000));
	for (int i = 1; i < 3; i++)
		cr_expect_eq(test_peer_count(peers[i], NULL), 0);
	for (int i = 0; i < 3; i++)
		test_peer_free(&peers[i]);
}

/* ---- 2.4, 2.8: our clock is wrong, says the peer ---- */

static void wrong_clock(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	if (*(volatile bool *)arg) {
		answer->status = 401;
		answer->body =
		    "{\"error\":\"Invalid signature\",\"statusCode\":401}";
	}
}

Test(hostile_load, a_peer_that_refuses_our_signature_is_shown_and_resumes)
{
	bool refuses = true;
	struct test_peer *peer;
	const char *db, *secret;

	test_db_needed();
	begin(NULL);
	db = site.world->node->database;
	peer = test_peer_new("orbit.localhost", wrong_clock, &refuses);
	cr_assert_eq(
	    world_accept(site.world, test_peer_origin(peer), "s").status, 200);
	secret = world_secret(site.world, test_peer_origin(peer));
	write_to("700", "orbit.localhost");
	cr_expect(test_db_until(db,
	    "SELECT EXISTS (SELECT FROM ops.peers WHERE state = 'refuses our "
	    "signature' AND meaning LIKE 'refuses our signature%') AS b",
	    20000));
	cr_expect_str_eq(
	    world_secret(site.world, test_peer_origin(peer)), secret);
	cr_expect_lt(test_peer_count(peer, HOSTILE_RELAY), 5, "no hammering");
	cr_expect_eq(test_peer_count(peer, HOSTILE_ACCEPT), 0);
	*(volatile bool *)&refuses = false;
	world_sql(site.world,
	    "UPDATE federation_peers SET next_attempt_at = now();"
	    "SELECT pg_notify('postrider_outbox', '')");
	cr_expect(test_db_until(db,
	    "SELECT NOT EXISTS (SELECT FROM federation_outbox) AS b", 20000));
	test_peer_free(&peer);
}

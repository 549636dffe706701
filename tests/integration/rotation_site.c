#include "tests/integration/rotation_site.h"

#include <criterion/criterion.h>

#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"

struct world *nova, *orbit;
struct test_peer *luna;
struct script script;

void rotation_site_end(void)
{
	world_free(&nova);
	world_free(&orbit);
	test_peer_free(&luna);
}

static void says(void *arg UNUSED, struct arena *arena UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	if (strcmp(request->path, ROTATE) == 0) {
		*answer = (struct test_peer_answer){ 200, .body = TAKEN };
		if (script.next < script.count)
			*answer = script.rotate[script.next++];
	} else if (strcmp(request->path, RELAY) == 0 &&
	    script.relay.status >= 0) {
		*answer = script.relay;
	}
}

void one_node(const char *host)
{
	script = (struct script){ .relay = { .status = -1 } };
	nova = world_new("nova.localhost", "open", NULL);
	luna = test_peer_new(host, says, NULL);
	cr_assert_eq(
	    world_accept(nova, test_peer_origin(luna), OLD).status, 200);
}

void two_nodes(void)
{
	nova = world_new("nova.localhost", NULL, NULL);
	orbit = world_new("orbit.localhost", NULL, NULL);
	cr_assert_eq(world_initiate(nova, orbit->node->origin).status, 200);
}

const char *origin(void)
{
	return test_peer_origin(luna);
}

const char *row(struct world *world, const char *expression)
{
	return test_db_text(world->arena, world->node->database,
	    arena_printf(world->arena,
		"SELECT coalesce((%s)::text, '') AS t FROM federation_peers p"
		" ORDER BY id LIMIT 1",
		expression));
}

const char *state(struct world *world)
{
	return row(world,
	    "CASE WHEN rotation_by IS NULL THEN 'none'"
	    " WHEN secret_rotation_at IS NULL THEN rotation_by || ' unknown'"
	    " ELSE rotation_by || ' grace' END");
}

bool becomes(struct world *world, const char *condition)
{
	return test_db_until(world->node->database,
	    arena_printf(world->arena,
		"SELECT bool_or(%s) AS b FROM federation_peers", condition),
	    WAIT_MS);
}

void hours_pass(struct world *world, double hours)
{
	world_sql(world,
	    "UPDATE federation_peers SET"
	    " secret_rotation_at = secret_rotation_at - %f * interval '1 h',"
	    " rotation_began_at = rotation_began_at - %f * interval '1 h',"
	    " rotation_attempt_until = rotation_attempt_until"
	    "     - %f * interval '1 h',"
	    " rotation_unsure_until = rotation_unsure_until"
	    "     - %f * interval '1 h'",
	    hours, hours, hours, hours);
}

const char *sent(size_t place)
{
	struct test_peer_request request = test_peer_nth(luna, ROTATE, place);

	return member_text(nova->arena, request.body, "newSecret");
}

bool is_signed_with(const char *path, size_t place, const char *secret)
{
	struct arena *arena = nova->arena;
	struct test_peer_request request = test_peer_nth(luna, path, place);

	return sign_verify(secret,
	    test_peer_header(arena, &request, "x-federation-timestamp"),
	    test_peer_header(arena, &request, "x-federation-nonce"),
	    request.body,
	    test_peer_header(arena, &request, "x-federation-signature"));
}

int relay(struct world *world, const char *from, const char *secret)
{
	return world_relay(world, from, secret).status;
}

void expect_delivery_with(const char *secret)
{
	size_t before = test_peer_count(luna, RELAY);

	world_sql(nova,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
	    " event_type, entity_id, payload, expires_at)"
	    " SELECT id, 'dm', '1', 'delete', '%zu', '', now() + '1 day'"
	    " FROM federation_peers",
	    before);
	cr_assert(test_peer_got(luna, RELAY, before + 1, WAIT_MS));
	cr_expect(is_signed_with(RELAY, before, secret));
	cr_assert(becomes(nova,
	    "NOT EXISTS (SELECT FROM federation_outbox) AND lease_until <"
	    " now()"));
}

void expect_both(const char *secret, int status)
{
	cr_expect_eq(relay(nova, orbit->node->origin, secret), status);
	cr_expect_eq(relay(orbit, nova->node->origin, secret), status);
}

void expect_one_secret(void)
{
	const char *secret = world_secret(nova, orbit->node->origin);

	cr_expect_str_eq(world_secret(orbit, nova->node->origin), secret);
	expect_both(secret, 200);
	hours_pass(nova, 1);
	hours_pass(orbit, 1);
	expect_both(secret, 200);
}

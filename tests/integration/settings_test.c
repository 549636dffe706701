/* What an administrator changes at run time, by the API and by psql. */
#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

#define PATH "/api/settings/instance"
#define STREAMING "/api/settings/streaming"

static struct arena *arena;
static struct test_node *node;
static struct test_person admin, member;

static void begin(void)
{
	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	test_frontd(node, NULL);
	admin = test_person(node, node->port, "root");
	member = test_person(node, node->port, "member");
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

TestSuite(settings, .init = begin, .fini = end, .timeout = 120);

static struct test_reply patch(const char *json)
{
	return test_patch(arena, node->port, PATH, admin.token, json);
}

static const char *row(void)
{
	return test_db_text(arena, node->database,
	    "SELECT (to_jsonb(s) - 'updated_at')::text AS t"
	    " FROM instance_settings s");
}

Test(settings, shows_all_of_them_to_administrators_only)
{
	struct test_reply reply =
	    test_get(arena, node->port, PATH, admin.token);

	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(reply.body,
	    "{\"instanceName\":\"Postrider\",\"registrationOpen\":true,"
	    "\"discoveryEnabled\":true,\"gifEnabled\":false,"
	    "\"maxUploadSizeMb\":100,\"federationRelayEnabled\":true,"
	    "\"federationRelayTtlDays\":30,"
	    "\"defaultAutoRotateIntervalDays\":90,"
	    "\"peerAcceptPolicy\":\"verify\","
	    "\"dmRelayScope\":\"participants\","
	    "\"homewardScope\":\"declared\",\"relayRequestsPerMinute\":90}");
	cr_expect_eq(
	    test_get(arena, node->port, PATH, member.token).status, 403);
	cr_expect_eq(test_get(arena, node->port, PATH, NULL).status, 401);
	cr_expect_eq(test_patch(arena, node->port, PATH, member.token,
			 "{\"instanceName\":\"Mine\"}")
			 .status,
	    403);
	cr_expect_eq(
	    test_patch(arena, node->port, PATH, NULL, "{}").status, 401);
	cr_expect_not_null(strstr(row(), "\"Postrider\""));
}

Test(settings, a_change_leaves_the_rest)
{
	static const struct {
		const char *json;
		const char *shown;
	} rows[] = {
		{ "{\"instanceName\":\"  Nova \"}",
		    "\"instanceName\":\"Nova\"" },
		{ "{\"registrationOpen\":false}",
		    "\"registrationOpen\":false" },
		{ "{\"discoveryEnabled\":false}",
		    "\"discoveryEnabled\":false" },
		{ "{\"maxUploadSizeMb\":5120}", "\"maxUploadSizeMb\":5120" },
		{ "{\"maxUploadSizeMb\":1.5}", "\"maxUploadSizeMb\":2" },
		{ "{\"federationRelayEnabled\":false}",
		    "\"federationRelayEnabled\":false" },
		{ "{\"federationRelayTtlDays\":365}",
		    "\"federationRelayTtlDays\":365" },
		{ "{\"defaultAutoRotateIntervalDays\":1}",
		    "\"defaultAutoRotateIntervalDays\":1" },
		{ "{\"peerAcceptPolicy\":\"approve\"}",
		    "\"peerAcceptPolicy\":\"approve\"" },
		{ "{\"dmRelayScope\":\"all_peers\"}",
		    "\"dmRelayScope\":\"all_peers\"" },
		{ "{\"homewardScope\":\"any_peer\"}",
		    "\"homewardScope\":\"any_peer\"" },
		{ "{\"relayRequestsPerMinute\":1000000}",
		    "\"relayRequestsPerMinute\":1000000" },
		{ "{}", "\"instanceName\":\"Nova\"" },
		{ "{\"instanceName\":null,\"somethingElse\":[1]}",
		    "\"instanceName\":\"Nova\"" },
	};
	struct test_reply reply;

	for (size_t i = 0; i < COUNT(rows); i++) {
		reply = patch(rows[i].json);
		cr_expect_eq(reply.status, 200, "row %zu: %s", i, reply.body);
		cr_expect_not_null(strstr(reply.body, rows[i].shown),
		    "row %zu: %s", i, reply.body);
	}
	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect(i == 3 || strstr(reply.body, rows[i].shown),
		    "row %zu: %s", i, reply.body);
	cr_expect_str_eq(
	    test_get(arena, node->port, PATH, admin.token).body, reply.body);
	cr_expect_eq(test_db_number(node->database,
			 "SELECT max_upload_size_bytes AS n"
			 " FROM instance_settings"),
	    1572864);
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(*) AS n FROM audit"
			 " WHERE action = 'settings.changed'"
			 " AND who = 'root'"),
	    COUNT(rows));
}

Test(settings, bad_ones_change_nothing)
{
	static const char *const rows[] = {
		"",
		"[]",
		"null",
		"\"x\"",
		"{\"instanceName\":",
		"{\"instanceName\":\"\"}",
		"{\"instanceName\":\"   \"}",
		"{\"instanceName\":7}",
		"{\"instanceName\":\"123456789012345678901234567890123\"}",
		"{\"instanceName\":\"a\\u0000b\"}",
		"{\"registrationOpen\":\"yes\"}",
		"{\"registrationOpen\":1}",
		"{\"discoveryEnabled\":0}",
		"{\"gifApiKey\":5}",
		"{\"maxUploadSizeMb\":0}",
		"{\"maxUploadSizeMb\":0.9}",
		"{\"maxUploadSizeMb\":5120.1}",
		"{\"maxUploadSizeMb\":\"7\"}",
		"{\"maxUploadSizeMb\":-1}",
		"{\"maxUploadSizeMb\":1e300}",
		"{\"federationRelayEnabled\":\"false\"}",
		"{\"federationRelayTtlDays\":0}",
		"{\"federationRelayTtlDays\":366}",
		"{\"federationRelayTtlDays\":1.5}",
		"{\"federationRelayTtlDays\":\"30\"}",
		"{\"defaultAutoRotateIntervalDays\":0}",
		"{\"defaultAutoRotateIntervalDays\":366}",
		"{\"peerAcceptPolicy\":\"all\"}",
		"{\"peerAcceptPolicy\":\"\"}",
		"{\"dmRelayScope\":\"nobody\"}",
		"{\"homewardScope\":true}",
		"{\"relayRequestsPerMinute\":0}",
		"{\"relayRequestsPerMinute\":1000001}",
		/* A good one beside a bad one. */
		"{\"instanceName\":\"Nova\",\"federationRelayTtlDays\":0}",
	};
	const char *before = row();

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply = patch(rows[i]);

		cr_expect_eq(reply.status, 400, "%s: %d %s", rows[i],
		    reply.status, reply.body);
		cr_expect_not_null(strstr(reply.body, "\"statusCode\":400"),
		    "%s: %s", rows[i], reply.body);
		cr_expect_str_eq(row(), before, "%s", rows[i]);
	}
}

Test(settings, a_key_is_masked_and_a_masked_one_ignored)
{
	struct test_reply reply = patch("{\"gifApiKey\":\" abcdefgh \"}");

	cr_expect_str_eq(test_text(arena, &reply, "gifApiKey"), "****efgh");
	cr_expect_not_null(strstr(reply.body, "\"gifEnabled\":true"));
	reply = patch("{\"gifApiKey\":\"****efgh\"}");
	cr_expect_not_null(strstr(row(), "\"abcdefgh\""));
	reply = patch("{\"gifApiKey\":\"abcd\"}");
	cr_expect_str_eq(test_text(arena, &reply, "gifApiKey"), "****");
	reply = patch("{\"gifApiKey\":\"\"}");
	cr_expect_null(strstr(reply.body, "gifApiKey"));
	cr_expect_not_null(strstr(reply.body, "\"gifEnabled\":false"));
	cr_expect_not_null(strstr(row(), "\"gif_api_key\": null"));
}

/* Nothing is cached: every process knows a change as soon as it is there. */
Test(settings, a_change_counts_at_once_in_every_process_whoever_made_it)
{
	const struct test_daemon *other = test_frontd(node, NULL);
	const int ports[] = { node->port, other->port };
	struct test_reply reply;

	for (int i = 0; i < 20; i++) {
		const char *name = arena_printf(arena, "Name %d", i);

		if (i % 2)
			test_db_script(node->database,
			    arena_printf(arena,
				"UPDATE instance_settings SET"
				" instance_name = '%s'",
				name));
		else
			cr_expect_eq(
			    patch(arena_printf(
				      arena, "{\"instanceName\":\"%s\"}", name))
				.status,
			    200);
		reply = test_get(
		    arena, ports[i / 2 % 2], "/api/instance/info", NULL);
		cr_expect_str_eq(test_text(arena, &reply, "name"), name);
	}
	cr_expect_eq(patch("{\"registrationOpen\":false}").status, 200);
	cr_expect_eq(test_post(arena, other->port, "/api/auth/register", NULL,
			 "{\"username\":\"late\",\"password\":\"a long "
			 "password\"}")
			 .status,
	    403);
	cr_expect_eq(patch("{\"peerAcceptPolicy\":\"open\","
			   "\"defaultAutoRotateIntervalDays\":7}")
			 .status,
	    200);
	cr_expect_eq(
	    test_post(arena, other->port, "/api/federation/peer/accept", NULL,
		"{\"sourceOrigin\":\"https://luna.example\","
		"\"hmacSecret\":\"s\"}")
		.status,
	    200);
	cr_expect_eq(test_db_number(node->database,
			 "SELECT auto_rotate_interval_days AS n"
			 " FROM federation_peers"),
	    7);
}

/* ---- limits of video ---- */

Test(settings, limits_of_video_are_shown_to_everybody_here)
{
	static const char plain[] =
	    "{\"maxBitrateKbps\":20000,\"minBitrateKbps\":500,"
	    "\"bitrateStepKbps\":500,\"allowedResolutions\":[540,720,1080],"
	    "\"allowedFramerates\":[30,45,60],\"maxResolution\":1080,"
	    "\"maxFramerate\":60,\"discoveryEnabled\":true,"
	    "\"bitrateMatrixOverrides\":null,\"allowCustomBitrate\":true}";
	static const char changed[] =
	    "{\"maxBitrateKbps\":30000,\"minBitrateKbps\":101,"
	    "\"bitrateStepKbps\":50,\"allowedResolutions\":[720,\"native\"],"
	    "\"allowedFramerates\":[120],\"maxResolution\":2160,"
	    "\"maxFramerate\":120,\"discoveryEnabled\":false,"
	    "\"bitrateMatrixOverrides\":{\"1080_60\":8000,"
	    "\"native_30\":0.5},\"allowCustomBitrate\":false}";
	struct test_reply reply =
	    test_get(arena, node->port, STREAMING, member.token);

	cr_expect_str_eq(reply.body, plain);
	cr_expect_eq(test_get(arena, node->port, STREAMING, NULL).status, 401);
	cr_expect_eq(test_patch(arena, node->port, STREAMING, member.token,
			 "{\"allowCustomBitrate\":false}")
			 .status,
	    403);
	reply = test_patch(arena, node->port, STREAMING, admin.token, "{}");
	cr_expect_str_eq(reply.body, plain);
	reply = test_patch(arena, node->port, STREAMING, admin.token, changed);
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(reply.body, changed);
	reply = test_patch(arena, node->port, STREAMING, admin.token,
	    "{\"bitrateMatrixOverrides\":null}");
	cr_expect_not_null(
	    strstr(reply.body, "\"bitrateMatrixOverrides\":null"));
	cr_expect_str_eq(
	    test_get(arena, node->port, STREAMING, member.token).body,
	    reply.body);
}

Test(settings, bad_limits_change_nothing)
{
	static const char *const rows[] = {
		"[]",
		"{\"maxBitrateKbps\":499}",
		"{\"maxBitrateKbps\":1000001}",
		"{\"maxBitrateKbps\":\"7000\"}",
		"{\"minBitrateKbps\":99}",
		"{\"minBitrateKbps\":20000}",
		"{\"maxBitrateKbps\":500}",
		"{\"bitrateStepKbps\":49}",
		"{\"bitrateStepKbps\":5001}",
		"{\"allowedResolutions\":[]}",
		"{\"allowedResolutions\":[541]}",
		"{\"allowedResolutions\":\"540\"}",
		"{\"allowedFramerates\":[\"native\"]}",
		"{\"allowedFramerates\":[30,30.5]}",
		"{\"maxResolution\":0}",
		"{\"maxResolution\":1}",
		"{\"maxFramerate\":1081}",
		"{\"discoveryEnabled\":1}",
		"{\"allowCustomBitrate\":\"no\"}",
		"{\"bitrateMatrixOverrides\":[]}",
		"{\"bitrateMatrixOverrides\":{\"1080_60\":0}}",
		"{\"bitrateMatrixOverrides\":{\"1080_60\":1000001}}",
		"{\"bitrateMatrixOverrides\":{\"1080_60\":\"8000\"}}",
	};
	const char *before = row();

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply = test_patch(
		    arena, node->port, STREAMING, admin.token, rows[i]);

		cr_expect_eq(reply.status, 400, "%s: %d %s", rows[i],
		    reply.status, reply.body);
		cr_expect_str_eq(row(), before, "%s", rows[i]);
	}
}

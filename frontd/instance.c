#include "common/base/build.h"
#include "common/base/clock.h"
#include "common/federation/settings.h"
#include "frontd/request.h"

/* GET /api/health: the process answers; says nothing about the database. */
static bool health(struct request *req, struct err *err UNUSED)
{
	return reply_json(req, 200,
	    arena_printf(req->arena,
		"{\"status\":\"ok\",\"timestamp\":%" PRId64 "}",
		clock_wall_ms()));
}

/* GET /api/instance/info: what peers and foreign clients may know. */
static bool instance_info(struct request *req, struct err *err)
{
	struct json_out out = { .buf = &req->reply };
	struct settings settings;

	if (!settings_read(req->tx, &settings, err))
		return false;
	reply_json(req, 200, "");
	json_open(&out, NULL);
	json_put_text(&out, "name", settings.instance_name);
	json_put_text(&out, "version", POSTRIDER_VERSION);
	json_put_bool(&out, "registrationOpen", settings.registration_open);
	json_put_text(&out, "instanceId", settings.instance_id);
	json_close(&out);
	return true;
}

/* clang-format off */
const struct route instance_routes[] = {
	{ "GET", "/api/health",        ANYONE, 1024, 0, 0, health },
	{ "GET", "/api/instance/info", ANYONE, 1024, 0, 0, instance_info },
	{ .method = NULL }
};
/* clang-format on */

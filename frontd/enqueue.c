/*
 * enqueue -- activities that an administrator owes to inboxes: what
 * fediverse_enqueue does, by HTTP.
 */
#include "common/fediverse/outbound.h"
#include "frontd/fediverse.h"
#include "frontd/enqueue.sql.h"

enum { BODY_MAX = 1024 * 1024, INBOXES_MAX = 500, TEXT_MAX = 1024 };

struct part {
	const char *text;
};

static const struct shape part_shape[] = {
	SHAPE(TEXT, struct part, text, NULL),
	SHAPE_END(struct part),
};

/* What a body asks for. */
struct order {
	struct enqueue_request request;
	const char *actor;
	const char **inboxes;
	size_t count;
};

/* One inbox, or a list of them. */
static void inboxes_read(struct json_in *in, struct order *order)
{
	const char *one = json_text_opt(in, "inbox", TEXT_MAX);
	const struct json *list = json_list_opt(in, "inboxes", INBOXES_MAX);
	size_t count = list ? json_count(list) : 0;

	order->inboxes = arena_array(in->arena, count + 1, sizeof(char *));
	for (size_t i = 0; i < count; i++) {
		order->inboxes[i] = json_string(json_element(list, i));
		if (!order->inboxes[i])
			json_fail(in, "inboxes", "must hold addresses");
	}
	if (one)
		order->inboxes[count] = one;
	order->count = count + (one != NULL);
	if (order->count == 0)
		json_fail(in, "inbox", "is required");
}

static bool order_read(
    struct request *req, struct order *order, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	struct json_in activity = json_object(&in, "activity");

	*order = (struct order){
		.request = {
			.activity_id = json_text_opt(&in, "activityId", TEXT_MAX),
			.transport = json_text_opt(&in, "transport", TEXT_MAX),
			.shared_inbox = json_bool_opt(&in, "sharedInbox", false),
		},
		.actor = json_text_opt(&in, "actor", ACTOR_NAME_MAX),
	};
	inboxes_read(&in, order);
	if (!in.failed && !order->request.activity_id)
		order->request.activity_id =
		    json_text(&activity, "id", TEXT_MAX);
	if (!order->actor && !order->request.transport)
		json_fail(&in, "actor", "is required: somebody has to sign");
	return json_done(&activity) && json_done(&in);
}

static bool actor_named(
    struct request *req, struct order *order, struct err *err)
{
	struct actor actor;
	bool found = false;

	if (!order->actor)
		return true;
	if (!actor_by_name(req->tx, order->actor, &actor, &found, err))
		return false;
	if (!found)
		return err_set(err, ERR_ABSENT, "No such actor");
	order->request.actor_user_id = actor.id;
	return true;
}

static bool payload_take(
    struct request *req, struct order *order, struct err *err)
{
	struct part part;

	if (!sql_one(req->tx, &SQL_enqueue_part, part_shape, &part, err,
		v_text(arena_textn(req->arena, req->body.data, req->body.len)),
		v_text("activity")))
		return false;
	order->request.payload_json = part.text;
	return true;
}

static bool reply_deliveries(
    struct request *req, int status, const struct rows *rows)
{
	reply_json(req, status, "{\"deliveries\":");
	json_write_rows(&req->reply, outbound_line_shape, rows);
	buf_char(&req->reply, '}');
	return true;
}

/* POST /api/fediverse/outbound */
static bool outbound_post(struct request *req, struct err *err)
{
	const struct home home = { .origin = req->node->origin };
	struct order order;
	struct rows rows;

	return order_read(req, &order, err) && fediverse_check(req->tx, err) &&
	    actor_named(req, &order, err) && payload_take(req, &order, err) &&
	    outbound_enqueue_all(req->tx, &home, &order.request, order.inboxes,
		order.count, &rows, err) &&
	    reply_deliveries(req, 202, &rows);
}

/* GET /api/fediverse/outbound?activityId=... */
static bool outbound_get(struct request *req, struct err *err)
{
	const char *activity = query_text(req, "activityId");
	struct rows rows;

	if (!fediverse_check(req->tx, err))
		return false;
	if (!activity || !*activity)
		return err_set(err, ERR_INVALID, "activityId is required");
	return outbound_of_activity(req->tx, activity, &rows, err) &&
	    reply_deliveries(req, 200, &rows);
}

/* clang-format off */
const struct route enqueue_routes[] = {
	{ "GET",  "/api/fediverse/outbound", ADMIN, 0,        0, 0, outbound_get },
	{ "POST", "/api/fediverse/outbound", ADMIN, BODY_MAX, 0, 0, outbound_post },
	{ .method = NULL }
};
/* clang-format on */

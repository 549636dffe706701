/*
 * peers -- the nodes we know, as the administrator sees and changes them.
 */
#include "common/base/id.h"
#include "common/federation/rotation.h"
#include "common/pg/notify.h"
#include "frontd/handshakes.h"
#include "frontd/peers.sql.h"
#include "frontd/signed.h"

enum {
	PEERS_MAX_BYTES = 16 << 20,
	BODY_MAX = 1 << 20,
	MINUTE_MS = 60000,
	ACCEPTS_MAX = 10,
	DAYS_MAX = 365
};

static bool peer_of_path(
    struct request *req, struct peer *peer, struct err *err)
{
	int64_t id = path_id(req, "id");

	if (id && peer_by_id(req->tx, id, peer, err))
		return true;
	if (id && err->code != ERR_ABSENT)
		return false;
	return err_set(err, ERR_ABSENT, "Peer not found");
}

static bool audit(struct request *req, const char *action,
    const struct peer *peer, struct err *err)
{
	log_info(action, F("peer", v_text(peer->origin)),
	    F("user", v_id(req->user.id)));
	return sql_none(req->tx, &SQL_peers_audit, err,
	    v_text(req->user.username), v_text(action), v_text(peer->origin));
}

/* GET /api/federation/peers */
static bool peers_get(struct request *req, struct err *err)
{
	struct rows rows;
	const struct peer *peers;
	struct buf buf;

	if (!peer_list(req->tx, &rows, err))
		return false;
	peers = rows.items;
	buf_init(&buf, req->arena, PEERS_MAX_BYTES);
	buf_text(&buf, "{\"peers\":[");
	for (size_t i = 0; i < rows.count; i++) {
		if (i)
			buf_char(&buf, ',');
		peer_write(&buf, &peers[i]);
	}
	buf_text(&buf, "]}");
	if (!buf_ok(&buf))
		return err_set(err, ERR_BUG, "list of peers too large");
	return reply_json(req, 200, buf.data);
}

/* A whole number, or one in a text, as recorded. */
static bool days_of(const struct json *value, int64_t *days)
{
	const char *text = json_string(value);

	if (text)
		*days = id_parse(text);
	else if (!json_whole(value, days))
		return false;
	return *days >= 1 && *days <= DAYS_MAX;
}

/* PATCH /api/federation/peers/:id */
static bool peer_patch(struct request *req, struct err *err)
{
	const struct json *body, *value;
	struct peer peer;
	int64_t days;

	if (!json_parse(req->arena, req->body, &body, err) ||
	    !peer_of_path(req, &peer, err))
		return false;
	value = json_member(body, "autoRotateIntervalDays");
	if (!value)
		return err_set(err, ERR_INVALID, "No valid fields to update");
	if (!days_of(value, &days))
		return err_set(err, ERR_INVALID,
		    "autoRotateIntervalDays must be an integer between 1 and "
		    "365");
	return sql_none(req->tx, &SQL_peers_interval, err, v_id(peer.id),
		   v_int(days)) &&
	    peer_by_id(req->tx, peer.id, &peer, err) && reply_peer(req, &peer);
}

/* DELETE /api/federation/peers/:id */
static bool peer_revoke(struct request *req, struct err *err)
{
	struct peer peer;

	if (!peer_of_path(req, &peer, err))
		return false;
	signal_control(req->tx, "peer");
	return sql_none(req->tx, &SQL_peers_revoke, err, v_id(peer.id)) &&
	    audit(req, "peer.revoked", &peer, err) && reply_success(req);
}

/* DELETE /api/federation/peers/:id/permanent */
static bool peer_delete(struct request *req, struct err *err)
{
	struct peer peer;

	if (!peer_of_path(req, &peer, err))
		return false;
	if (!peer_status_is(&peer, "revoked"))
		return err_set(err, ERR_INVALID,
		    "Only revoked peers can be permanently deleted. Revoke the "
		    "peer first.");
	return sql_none(req->tx, &SQL_peers_delete, err, v_id(peer.id)) &&
	    audit(req, "peer.deleted", &peer, err) && reply_success(req);
}

/* ---- POST /api/federation/peers/:id/rotate ---- */

static bool peer_rotate_after(struct request *req, struct err *err)
{
	struct rotation_result result;

	if (!rotation_end(req->tx, req->parked_ask, &result, err))
		return false;
	if (result.status != 200)
		return reply_text(req, result.status, result.text);
	return reply_json(req, 200,
	    arena_printf(req->arena, "{\"success\":true,\"gracePeriodMs\":%d}",
		ROTATION_GRACE_MS));
}

static bool peer_rotate(struct request *req, struct err *err)
{
	struct peer peer;
	struct ask ask;

	return peer_of_path(req, &peer, err) &&
	    rotation_begin(req->tx, peer.id, &ask, err) &&
	    audit(req, "peer.rotated", &peer, err) &&
	    request_park(req, &ask, peer_rotate_after);
}

/* ---- POST /api/federation/peer/rotate, by the peer ---- */

static bool rotate_post(struct request *req, struct err *err)
{
	struct sign_headers headers;
	const struct json *body;
	struct peer peer;

	if (!signed_headers_check(req, &headers, err) ||
	    !peer_authenticate_again(
		req->tx, req->node, &headers, req->body, &peer, err) ||
	    !json_parse(req->arena, req->body, &body, err) ||
	    !rotation_take(req->tx, req->node, peer.id,
		json_string(json_member(body, "newSecret")), err) ||
	    !peer_seen(req->tx, &peer, false, err))
		return false;
	return reply_json(req, 200,
	    arena_printf(req->arena, "{\"accepted\":true,\"gracePeriodMs\":%d}",
		ROTATION_GRACE_MS));
}

/* clang-format off */
const struct route peer_routes[] = {
	{ "POST",   "/api/federation/peer/initiate",       ADMIN, BODY_MAX, 0, 0, handshake_initiate_post },
	{ "POST",   "/api/federation/peer/accept",         PEER,  BODY_MAX, ACCEPTS_MAX, MINUTE_MS, handshake_accept_post },
	{ "POST",   "/api/federation/peer/rotate",         PEER,  BODY_MAX, 0, 0, rotate_post },
	{ "POST",   "/api/federation/peer/denied",         PEER,  BODY_MAX, 0, 0, handshake_denied_post },
	{ "POST",   "/api/federation/epoch",               PEER,  BODY_MAX, 0, 0, handshake_epoch_post },
	{ "GET",    "/api/federation/peers",               ADMIN, 0,        0, 0, peers_get },
	{ "PATCH",  "/api/federation/peers/:id",           ADMIN, BODY_MAX, 0, 0, peer_patch },
	{ "DELETE", "/api/federation/peers/:id",           ADMIN, BODY_MAX, 0, 0, peer_revoke },
	{ "DELETE", "/api/federation/peers/:id/permanent", ADMIN, BODY_MAX, 0, 0, peer_delete },
	{ "POST",   "/api/federation/peers/:id/rotate",    ADMIN, BODY_MAX, 0, 0, peer_rotate },
	{ 0 },
};
/* clang-format on */

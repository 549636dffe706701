#include "frontd/handshakes.h"

#include "common/base/clock.h"
#include "common/federation/handshake.h"
#include "frontd/frontd.h"
#include "frontd/signed.h"

enum { ORIGIN_MAX = 512, REPLY_TEXT_MAX = 4096 };

bool reply_peer(struct request *req, const struct peer *peer)
{
	struct buf buf;

	buf_init(&buf, req->arena, REPLY_TEXT_MAX);
	buf_text(&buf, "{\"peer\":");
	peer_write(&buf, peer);
	buf_char(&buf, '}');
	return reply_json(req, 200, buf.data);
}

/* A member that must be a text; anything else counts as missing, as recorded.
 */
static const char *text_member(const struct json *body, const char *name)
{
	const char *text = json_string(json_member(body, name));

	return text && *text ? text : NULL;
}

static bool required(const char *text, const char *name, struct err *err)
{
	if (text)
		return true;
	err_set(err, ERR_INVALID, "%s is required", name);
	return false;
}

static bool origin_read(struct request *req, const char *text, const char *name,
    struct origin *origin, struct err *err)
{
	if (strlen(text) <= ORIGIN_MAX &&
	    origin_parse(req->arena, text, origin) &&
	    strlen(origin->text) <= ORIGIN_MAX)
		return true;
	return err_set(err, ERR_INVALID,
	    "%s must be a valid HTTPS URL (HTTP is only allowed for localhost)",
	    name);
}

static bool not_ourselves(
    const struct request *req, const struct origin *origin, struct err *err)
{
	if (strcmp(origin->host, req->node->origin.host) != 0)
		return true;
	return err_set(err, ERR_INVALID, "Cannot peer with yourself");
}

/* An empty body counts as an object without members. */
static bool body_read(
    struct request *req, const struct json **body, struct err *err)
{
	struct bytes text = req->body;

	if (!text.len)
		text = (struct bytes){ "{}", 2 };
	return json_parse(req->arena, text, body, err);
}

/* ---- POST /api/federation/peer/initiate ---- */

static bool initiate_after(struct request *req, struct err *err)
{
	struct handshake_result result = { 0 };

	if (!handshake_end(req->tx, req->parked_ask, &result, err))
		return false;
	return result.status == 200
	    ? reply_peer(req, &result.peer)
	    : reply_text(req, result.status, result.text);
}

/* Comes twice when the other side has begun and we wait for that to end. */
bool handshake_initiate_post(struct request *req, struct err *err)
{
	const struct json *body;
	struct origin origin;
	struct peer peer;
	struct ask ask;
	enum handshake_begun begun;
	const char *text;

	if (!body_read(req, &body, err))
		return false;
	text = text_member(body, "remoteOrigin");
	if (!required(text, "remoteOrigin", err) ||
	    !origin_read(req, text, "remoteOrigin", &origin, err) ||
	    !not_ourselves(req, &origin, err) ||
	    !handshake_begin(
		req->tx, req->node, &origin, &peer, &ask, &begun, err))
		return false;
	switch (begun) {
	case BEGUN_KNOWN:
		return reply_peer(req, &peer);
	case BEGUN_ASK:
		return request_park(req, &ask, initiate_after);
	case BEGUN_WAIT:
		if (!req->parked_ask)
			return request_park(req, &ask, handshake_initiate_post);
		break;
	case BEGUN_ALREADY:
		break;
	}
	return err_set(err, ERR_CONFLICT,
	    "A peering handshake with this instance is already in progress");
}

/* ---- POST /api/federation/peer/accept ---- */

static bool is_signed(const struct http_head *head)
{
	return http_head_count(head, "x-federation-signature") > 0;
}

static bool offer_read(
    struct request *req, struct handshake_offer *offer, struct err *err)
{
	const struct json *body;
	const char *origin;

	if (!body_read(req, &body, err))
		return false;
	origin = text_member(body, "sourceOrigin");
	offer->secret = text_member(body, "hmacSecret");
	if (!required(origin, "sourceOrigin", err) ||
	    !required(offer->secret, "hmacSecret", err) ||
	    !origin_read(req, origin, "sourceOrigin", &offer->origin, err) ||
	    !not_ourselves(req, &offer->origin, err))
		return false;
	if (strlen(offer->secret) > HANDSHAKE_SECRET_MAX)
		return err_set(err, ERR_INVALID, "hmacSecret is too long");
	offer->approval_token = text_member(body, "approvalToken");
	offer->name = handshake_name_read(body);
	offer->our_secret_stands = handshake_says(req->arena,
	    arena_textn(req->arena, req->body.data, req->body.len),
	    "yourSecretStands");
	offer->body = req->body;
	offer->is_signed = is_signed(req->head);
	offer->counter_ms = req->conf->handshake_deadline;
	return true;
}

static bool refuse_unproved(struct request *req)
{
	return reply_text(req, 403, "Could not verify the claimed origin");
}

/* Open, closed and forbidden ports look alike: the refusal comes at the time
 * that the handler has set. */
static bool accept_after(struct request *req, struct err *err)
{
	bool accepted;

	if (!handshake_countered(
		req->tx, req->node, req->parked_ask, &accepted, err))
		return false;
	if (!accepted)
		return refuse_unproved(req);
	req->reply_not_before = 0;
	return reply_json(req, 200, "{\"accepted\":true}");
}

static bool reply_queued(struct request *req, const struct peer *peer)
{
	return reply_json(req, 202,
	    arena_printf(req->arena,
		"{\"queued\":true,"
		"\"message\":\"Request queued for admin approval\","
		"\"approvalToken\":\"%s\"}",
		peer->approval_token));
}

static bool reply_verdict(struct request *req, enum handshake_verdict verdict,
    const struct peer *peer, const struct ask *ask, struct err *err)
{
	switch (verdict) {
	case VERDICT_ACCEPTED:
		return reply_json(req, 200, "{\"accepted\":true}");
	case VERDICT_KEPT:
		return reply_json(
		    req, 200, "{\"accepted\":true,\"yourSecretStands\":true}");
	case VERDICT_EXISTS:
		return reply_json(req, 409,
		    "{\"accepted\":false,"
		    "\"code\":\"PEER_EXISTS_RESET_REQUIRED\","
		    "\"error\":\"This instance already holds peering for you; "
		    "its admin must reset that peering before a new handshake "
		    "can be accepted.\",\"statusCode\":409}");
	case VERDICT_REVOKED:
		return err_set(err, ERR_FORBIDDEN,
		    "Peering with this instance has been revoked");
	case VERDICT_QUEUED:
		return reply_queued(req, peer);
	case VERDICT_REFUSED:
		return refuse_unproved(req);
	case VERDICT_TOO_MANY:
		return err_set(err, ERR_TOO_MANY,
		    "Too many peering requests \xe2\x80\x94 try again later");
	case VERDICT_COUNTER:
		break;
	}
	req->reply_not_before = ask->deadline;
	return request_park(req, ask, accept_after);
}

bool handshake_accept_post(struct request *req, struct err *err)
{
	struct handshake_offer offer = { 0 };
	struct sign_headers headers;
	enum handshake_verdict verdict;
	struct peer peer;
	struct ask ask;

	if (!offer_read(req, &offer, err))
		return false;
	offer.headers = signed_headers(req, &headers) ? &headers : NULL;
	return handshake_accept(
		   req->tx, req->node, &offer, &peer, &ask, &verdict, err) &&
	    reply_verdict(req, verdict, &peer, &ask, err);
}

/* ---- POST /api/federation/peer/denied ---- */

/* Newer servers tell us when an administrator has refused what was queued. */
bool handshake_denied_post(struct request *req, struct err *err)
{
	struct sign_headers headers;

	return signed_headers_check(req, &headers, err) &&
	    handshake_denied(req->tx, req->node, &headers, req->body, err) &&
	    reply_json(req, 200, "{\"acknowledged\":true}");
}

/* ---- POST /api/federation/epoch ---- */

static void sign_reply(
    struct request *req, const char *secret, const char *body)
{
	struct arena *arena = req->arena;
	const char *timestamp =
	    arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];

	sign_make(secret, timestamp, nonce,
	    (struct bytes){ body, strlen(body) }, signature);
	reply_header(
	    req, "x-federation-signature", arena_text(arena, signature));
	reply_header(req, "x-federation-timestamp", timestamp);
	reply_header(req, "x-federation-nonce", nonce);
}

bool handshake_epoch_post(struct request *req, struct err *err)
{
	struct sign_headers headers;
	const char *instance_id, *secret, *body;

	if (!signed_headers(req, &headers))
		return err_set(err, ERR_INVALID,
		    "Missing or malformed federation headers");
	if (!handshake_epoch(req->tx, req->node, &headers, req->body,
		&instance_id, &secret, err))
		return false;
	body = arena_printf(req->arena, "{\"instanceId\":\"%s\"}", instance_id);
	sign_reply(req, secret, body);
	return reply_json(req, 200, body);
}

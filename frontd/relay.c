#include "common/base/log.h"
#include "common/federation/peer.h"
#include "common/federation/relay.h"
#include "frontd/identity.h"
#include "frontd/signed.h"

enum { RELAY_BODY_MAX = 10485760, BODY_MAX = 1048576, ANSWER_MAX = 16 << 20 };

static bool authenticate(struct request *req,
    const struct sign_headers *headers, struct peer *peer, struct err *err)
{
	return peer_authenticate(
	    req->tx, req->node, headers, req->body, peer, err);
}

/*
 * The whole batch in this transaction; when the database refuses it, one
 * transaction an event. The rollback forgot the nonce, so the request proves
 * itself again, and that is committed first: the rollback of a bad event must
 * not make the request good for another time.
 */
static bool apply(struct request *req, const struct sign_headers *headers,
    struct relay_batch *batch, struct err *err)
{
	struct peer peer;

	if (relay_apply(req->tx, batch, err))
		return true;
	log_warn("relay.batch_failed", F("peer", v_text(headers->origin)),
	    F("err", v_text(err->text)));
	tx_rollback(req->tx);
	return authenticate(req, headers, &peer, err) &&
	    tx_commit(req->tx, err) && relay_apply_singly(req->tx, batch, err);
}

static bool answer(
    struct request *req, const struct relay_batch *batch, struct err *err)
{
	struct buf text;

	relay_log(batch);
	buf_init(&text, req->arena, ANSWER_MAX);
	relay_answer(batch, &text);
	if (!buf_ok(&text))
		return err_set(err, ERR_BUG, "the answer is too long");
	return reply_json(req, 200, text.data);
}

/* POST /api/federation/relay */
static bool relay_post(struct request *req, struct err *err)
{
	struct sign_headers headers;
	struct relay_batch *batch = NULL;
	struct peer peer;

	return signed_headers_check(req, &headers, err) &&
	    authenticate(req, &headers, &peer, err) &&
	    relay_parse(req->arena, req->body, req->node, &peer, &batch, err) &&
	    apply(req, &headers, batch, err) &&
	    peer_seen(req->tx, &peer, headers.nonce != NULL, err) &&
	    answer(req, batch, err);
}

/* clang-format off */
const struct route relay_routes[] = {
	{ "POST", "/api/federation/relay", PEER, RELAY_BODY_MAX, 0, 0, relay_post },
	{ "DELETE", "/api/federation/identity", PEER, BODY_MAX, 0, 0, identity_delete },
	{ .method = NULL },
};
/* clang-format on */

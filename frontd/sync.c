#include "common/federation/sync.h"
#include "common/federation/peer.h"
#include "frontd/signed.h"

enum { SYNC_BODY_MAX = 65536 };

/* POST /api/federation/sync */
static bool sync_post(struct request *req, struct err *err)
{
	struct sign_headers headers;
	struct peer peer;
	struct sync_question question;
	struct buf text;

	return signed_headers_check(req, &headers, err) &&
	    peer_authenticate_sync(
		req->tx, req->node, &headers, req->body, &peer, err) &&
	    sync_read(req->arena, req->body, &question, err) &&
	    sync_answer(req->tx, req->node, peer.host, &question, &text, err) &&
	    peer_seen(req->tx, &peer, headers.nonce != NULL, err) &&
	    reply_json(req, 200, text.data);
}

/* clang-format off */
const struct route sync_routes[] = {
	{ "POST", "/api/federation/sync", PEER, SYNC_BODY_MAX, 0, 0, sync_post },
	{ .method = NULL },
};
/* clang-format on */

#include "common/base/clock.h"
#include "common/federation/handshake.h"
#include "common/federation/handshake.sql.h"

struct offered {
	struct bytes body;
};

static const struct shape offered_shape[] = {
	SHAPE(BYTES, struct offered, body, NULL),
	SHAPE_END(struct offered),
};

struct instance {
	const char *instance_id;
};

static const struct shape instance_shape[] = {
	SHAPE(TEXT, struct instance, instance_id, NULL),
	SHAPE_END(struct instance),
};

static const char *offered_signer(struct tx *tx, const struct node *node,
    const struct peer *peer, const struct sign_headers *headers,
    struct bytes body, const struct rows *offers)
{
	const struct offered *items = offers->items;
	struct arena *arena = tx_arena(tx);

	for (size_t i = 0; i < offers->count; i++) {
		const char *secret =
		    peer_open(arena, node, peer->id, items[i].body);

		if (secret &&
		    sign_verify(secret, headers->timestamp, headers->nonce,
			body, headers->signature))
			return secret;
	}
	return NULL;
}

static bool epoch_signer(struct tx *tx, const struct node *node,
    const struct peer *peer, const struct sign_headers *headers,
    struct bytes body, const char **secret, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct rows offers;

	*secret = NULL;
	switch (peer_verify(arena, node, peer, headers, body)) {
	case PEER_SECRET:
		*secret = peer_secret(arena, node, peer);
		return true;
	case PEER_OTHER_SECRET:
		*secret = peer_other_secret(arena, node, peer);
		return true;
	case PEER_NO_SECRET:
		break;
	}
	if (!sign_in_window(headers->timestamp_ms, clock_wall_ms()))
		return true;
	if (!sql_many(tx, &SQL_handshake_offers, offered_shape, &offers, err,
		v_id(peer->id)))
		return false;
	*secret = offered_signer(tx, node, peer, headers, body, &offers);
	return true;
}

bool handshake_epoch(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body,
    const char **instance_id, const char **secret, struct err *err)
{
	struct instance instance;
	struct peer peer;
	bool found;

	if (!peer_by_origin(tx, headers->origin, &peer, &found, err))
		return false;
	if (!found || peer_status_is(&peer, "revoked"))
		return err_set(err, ERR_FORBIDDEN, "Not peered");
	if (!epoch_signer(tx, node, &peer, headers, body, secret, err))
		return false;
	if (!*secret)
		return err_set(err, ERR_UNAUTHORIZED, "Invalid signature");
	if (!sql_one(
		tx, &SQL_handshake_instance, instance_shape, &instance, err))
		return false;
	*instance_id = instance.instance_id;
	return true;
}

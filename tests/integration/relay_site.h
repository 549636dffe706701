/*
 * relay_site -- our node with one peer, driven below HTTP.
 *
 * Node https://nova.test with alice and bob; peer https://luna.test, whose
 * zed writes to them. Batches go through relay_parse and relay_apply.
 */
#ifndef POSTRIDER_RELAY_SITE_H
#define POSTRIDER_RELAY_SITE_H

#include "common/federation/node.h"
#include "common/federation/peer.h"
#include "common/pg/sql.h"

struct relay_site {
	struct arena *arena;
	char *conninfo;
	struct conn *conn;
	struct node node;
	struct peer luna;
	int64_t alice;
	int64_t bob;
};

void relay_site_begin(struct relay_site *site);
void relay_site_end(struct relay_site *site);

/* The answer to a batch of luna; events is the content of the JSON list. */
const char *relay_site_send(struct relay_site *site, const char *events);
/* As another peer, through a connection of one's own. */
const char *relay_site_apply(struct relay_site *site, struct conn *conn,
    const struct peer *peer, const char *events, bool singly);

/* A peer row that a test needs besides luna. */
struct peer relay_site_peer(struct relay_site *site, const char *host);

/* A create of zed to alice; more is spliced into the message. */
const char *relay_site_create(
    struct relay_site *site, const char *id, const char *content);

int64_t relay_site_number(struct relay_site *site, const char *query);
const char *relay_site_text(struct relay_site *site, const char *query);

#define SITE_ZED \
	"{\"homeUserId\":\"700\",\"homeInstance\":\"https://luna.test\"," \
	"\"profile\":{\"username\":\"zed\",\"displayName\":\"Zed\"," \
	"\"avatar\":\"z.png\",\"avatarColor\":\"mint\"}}"

#endif

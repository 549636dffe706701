/*
 * request -- what a handler works on: one HTTP request with its transaction.
 *
 * A handler runs on a worker thread, reads the request, calls the domain and
 * ends with reply_*; it returns false with err for everything else. The
 * dispatcher commits on true and only then sends the reply; an error it turns
 * into the documented shape and one log line. A handler that needs a peer's
 * answer ends with request_park: its transaction is committed, neither worker
 * nor connection is held, and after runs on a worker (a new transaction) once
 * the ask is answered or its deadline is over.
 *
 * The transaction begins at the first statement. req and all it points to
 * live in req->arena until the reply is sent.
 */
#ifndef POSTRIDER_REQUEST_H
#define POSTRIDER_REQUEST_H

#include "common/chat/user.h"
#include "common/federation/ask.h"
#include "common/federation/node.h"
#include "common/net/http.h"

struct request;

struct request {
	struct arena *arena;
	struct tx *tx;
	const struct node *node;
	const struct frontd_conf *conf;
	const struct http_head *head;
	struct bytes body;
	const char *client; /* address */
	struct user user;   /* the caller, where the route asks for one */

	/* what the handler leaves */
	int status;
	struct buf reply;
	const char *reply_type; /* NULL: JSON */
	struct http_header reply_headers[8];
	size_t reply_header_count;
	int64_t parked_ask;	    /* the first of these */
	const int64_t *parked_asks; /* all of them are waited for */
	size_t parked_count;
	const void *kept; /* by the first part for the second; in the arena */
	bool (*after)(struct request *req, struct err *err);
	int64_t
	    reply_not_before; /* wall ms: hold the answer until then, or 0 */
};

/* A part of the path by the route's name (":id"); "" when absent. */
const char *path_text(const struct request *req, const char *name);
/* As an id of this node; 0 when it is none. */
int64_t path_id(const struct request *req, const char *name);
const char *query_text(const struct request *req, const char *name);

/* Replies. The texts are JSON. */
bool reply_json(struct request *req, int status, const char *json);
bool reply_shape(struct request *req, int status, const struct shape *shape,
    const void *record);
/* {"error":text,"statusCode":status}, and the transaction is committed. */
bool reply_text(struct request *req, int status, const char *text);
bool reply_success(struct request *req); /* 200 {"success":true} */
/* Anything else; type is what Content-Type says. */
bool reply_as(
    struct request *req, int status, const char *type, const char *text);
void reply_header(struct request *req, const char *name, const char *value);

bool request_park(struct request *req, const struct ask *ask,
    bool (*after)(struct request *req, struct err *err));
/* For the answers of all of them; the latest deadline counts. */
bool request_park_all(struct request *req, const struct ask *asks, size_t count,
    bool (*after)(struct request *req, struct err *err));

/* The routes of each file, ended by an entry without a method. */
struct route {
	const char *method;
	const char *pattern; /* "/api/dm/:id/messages" */
	/* PASSWORD: anyone; as many at once as may be hashed.
	 * PASSWORD_USER: a user, likewise.
	 * INBOX: who signs an activity, which has media types of its own. */
	enum route_who {
		ANYONE,
		PASSWORD,
		PASSWORD_USER,
		USER,
		ADMIN,
		PEER,
		INBOX
	} who;
	int64_t body_max;
	int64_t rate_max; /* 0: the general counter */
	int64_t rate_window_ms;
	bool (*handler)(struct request *req, struct err *err);
};
extern const struct route auth_routes[];
extern const struct route user_routes[];
extern const struct route dm_routes[];
extern const struct route group_routes[];
extern const struct route reaction_routes[];
extern const struct route read_routes[];
extern const struct route typing_routes[];
extern const struct route peer_routes[];
extern const struct route relay_routes[];
extern const struct route sync_routes[];
extern const struct route instance_routes[];
extern const struct route settings_routes[];
extern const struct route streaming_routes[];
extern const struct route discovery_routes[];
extern const struct route actor_routes[];
extern const struct route actors_routes[];
extern const struct route enqueue_routes[];
extern const struct route social_routes[];
extern const struct route inbox_routes[];

#endif

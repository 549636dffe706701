/*
 * inbox -- what other servers deliver to our actors.
 *
 * An answer of 202 means verified. Everything that needs no key is looked at
 * first; then each signature with the key that we remember; and only then the
 * key is fetched, through outboxd, while the request is parked. The same steps
 * run again with the answer.
 */
#include "common/base/clock.h"
#include "common/fediverse/outbound.h"
#include "frontd/inbox.sql.h"
#include "frontd/inbox_visit.h"

enum {
	BODY_MAX = 1 << 20,
	MINUTE_MS = 60000,
	DELIVERIES_MAX = 600, /* a minute and address */
	FETCH_MS = 5000,
	RETRY_S = 60,
	/* Questions at once: strangers may not fill the room of all who wait.
	 */
	ASKING_MAX = 200
};

/* What to do without a key: fetch it, or say why not. */
static bool is_failing(const struct remote_key *key)
{
	return key->failed_until > clock_wall_ms();
}

static bool refuse_for_now(struct err *err)
{
	err_set(err, ERR_BUSY, "the sender's key can not be fetched");
	err->retry_after_s = RETRY_S;
	return false;
}

/* True: fetch. False: the answer is in err. */
static bool may_fetch(const struct visit *visit, enum key_verdict verdict,
    const struct remote_key *key, struct err *err)
{
	int64_t now_ms = clock_wall_ms();

	if (verdict == KEY_DIFFERS &&
	    (visit->fetched ||
		key->refetched_at > now_ms - REMOTE_KEY_PAUSE_MS))
		return err_set(err, ERR_UNAUTHORIZED, "bad signature");
	if (is_failing(key) && verdict == KEY_DIFFERS)
		return err_set(err, ERR_UNAUTHORIZED, "bad signature");
	if (is_failing(key) && key->failed_finally)
		return err_set(err, ERR_UNAUTHORIZED, "no such key");
	if (is_failing(key) || visit->fetched)
		return refuse_for_now(err);
	return true;
}

/* ---- fetching ---- */

struct asking {
	int64_t many;
};

static const struct shape asking_shape[] = {
	SHAPE(INT, struct asking, many, NULL),
	SHAPE_END(struct asking),
};

static bool has_room(struct request *req, struct err *err)
{
	struct asking asking;

	return sql_one(
		   req->tx, &SQL_inbox_asking, asking_shape, &asking, err) &&
	    (asking.many < ASKING_MAX || refuse_for_now(err));
}

/* Somebody may be asking the same already: one answer serves all. */
static bool ask_for(struct request *req, const struct visit *visit,
    const char *url, struct ask *ask, struct err *err)
{
	bool found;

	*ask = (struct ask){
		.kind = "actor",
		.origin = visit->activity.origin,
		.body = { url, strlen(url) },
		.deadline = clock_wall_ms() + FETCH_MS,
	};
	if (!sql_opt(req->tx, &SQL_inbox_asked, ask_shape, ask, &found, err,
		v_text(ask->origin), v_bytes(ask->body)))
		return false;
	if (found)
		return true;
	return has_room(req, err) &&
	    remote_key_count_fetch(req->tx, ask->origin, err) &&
	    actor_instance_make(req->tx, req->node->key, &req->node->origin,
		&(struct actor){ 0 }, err) &&
	    ask_add(req->tx, ask, err);
}

static bool answered_finally(const struct ask *ask)
{
	int64_t status = ask->status;

	if (strcmp(ask->outcome, "refused") == 0)
		return true;
	return strcmp(ask->outcome, "answered") == 0 && status < 500 &&
	    status != 408 && status != 425 && status != 429;
}

/* Did we get as far as asking? What failed here says nothing of the key. */
static bool was_asked(const struct ask *ask)
{
	return strcmp(ask->outcome, "too_late") != 0;
}

static struct bytes text_of(const struct ask *ask)
{
	return (
	    struct bytes){ ask->answer, ask->answer ? strlen(ask->answer) : 0 };
}

/* With what the document says of its server. */
static bool key_keep(struct request *req, const char *key_id,
    const struct ask *ask, const struct key_document *document, struct err *err)
{
	return remote_key_store(req->tx, key_id, document, err) &&
	    (!document->takes_rfc9421 ||
		outbound_signs_rfc9421(req->tx, ask->origin, err));
}

static bool learn_key(struct request *req, const char *key_id,
    const struct ask *ask, struct err *err)
{
	struct key_document document;
	struct err why;

	if (ask_answered(ask, 200)) {
		if (key_document_read(
			req->arena, text_of(ask), key_id, &document, &why))
			return key_keep(req, key_id, ask, &document, err);
		log_info("inbox.key_refused", F("peer", v_text(ask->origin)),
		    F("err", v_text(why.text)));
		return remote_key_fail(req->tx, key_id, true, err);
	}
	if (!was_asked(ask))
		return true;
	return remote_key_fail(req->tx, key_id, answered_finally(ask), err);
}

/* ---- the end ---- */

static bool reply_taken(struct request *req)
{
	return reply_json(req, 202, "");
}

static bool take(struct request *req, const struct visit *visit,
    const struct remote_key *sender, struct err *err)
{
	const struct home home = { .origin = req->node->origin,
		.key = req->node->key };
	const struct inbound in = {
		.activity = &visit->activity,
		.sender = sender,
		.recipient = visit->is_shared ? NULL : &visit->recipient,
		.home = &home,
	};

	return inbound_take(req->tx, &in, err) && reply_taken(req);
}

static bool inbox_introduced(struct request *req, struct err *err);
static bool inbox_fetched(struct request *req, struct err *err);

/* A follower that showed but its key is asked where its inbox is. */
static bool take_or_ask(
    struct request *req, const struct visit *visit, struct err *err)
{
	const struct inbound in = { .activity = &visit->activity,
		.sender = &visit->sender };
	struct ask ask;

	if (!inbound_needs_inbox(&in))
		return take(req, visit, &visit->sender, err);
	return ask_for(req, visit,
		   key_document_url(req->arena, visit->activity.actor), &ask,
		   err) &&
	    request_park(req, &ask, inbox_introduced);
}

static bool fetch(struct request *req, const struct visit *visit,
    const struct sig_claim *claim, enum key_verdict verdict, struct err *err)
{
	struct ask ask;

	if (verdict == KEY_DIFFERS &&
	    !remote_key_doubt(req->tx, claim->key_id, err))
		return false;
	return ask_for(req, visit, key_document_url(req->arena, claim->key_id),
		   &ask, err) &&
	    request_park(req, &ask, inbox_fetched);
}

/* The first claim decides, unless a later one is proved. */
static bool decide(struct request *req, struct visit *visit, struct err *err)
{
	const struct sig_claims *claims = &visit->claims;
	enum key_verdict first = KEY_UNKNOWN;
	struct remote_key doubted = { 0 };

	for (size_t i = 0; i < claims->count; i++) {
		const struct sig_claim *claim = &claims->items[i];
		struct remote_key key = { 0 };
		enum key_verdict verdict;
		bool found;

		if (!remote_key_find(req->tx, claim->key_id, &key, &found, err))
			return false;
		verdict = key_judge(visit, claim, &key);
		if (verdict == KEY_FITS ||
		    (verdict == KEY_OLD &&
			(visit->fetched || is_failing(&key)))) {
			visit->sender = key;
			return (claim->style != SIG_RFC9421 ||
				   outbound_signs_rfc9421(
				       req->tx, visit->activity.origin, err)) &&
			    take_or_ask(req, visit, err);
		}
		if (i == 0) {
			first = verdict;
			doubted = key;
		}
	}
	return may_fetch(visit, first, &doubted, err) &&
	    fetch(req, visit, &claims->items[0], first, err);
}

/* Of somebody whom we never knew: thousands of these come a day. */
static bool is_idle_departure(
    struct request *req, const struct visit *visit, bool *idle, struct err *err)
{
	bool known = true;

	if (activity_is_departure(&visit->activity) &&
	    !remote_actor_known(req->tx, visit->activity.actor, &known, err))
		return false;
	*idle = !known;
	return true;
}

/* POST /inbox, /actor/inbox, /users/:name/inbox */
static bool inbox_post(struct request *req, struct err *err)
{
	struct visit visit = { .fetched = false };
	bool idle;

	if (!visit_read(req, &visit, err) ||
	    !is_idle_departure(req, &visit, &idle, err))
		return false;
	if (idle)
		return reply_taken(req);
	return visit_claims(req, &visit, err) && decide(req, &visit, err);
}

/* A server that says of its actor "gone" has proved what the actor says. */
static bool is_proved_departure(
    struct request *req, const struct visit *visit, const struct ask *ask)
{
	const char *asked =
	    key_document_url(req->arena, visit->claims.items[0].key_id);

	return activity_is_departure(&visit->activity) &&
	    strcmp(asked, visit->activity.actor) == 0 && ask_answered(ask, 410);
}

static bool inbox_fetched(struct request *req, struct err *err)
{
	struct visit visit = { .fetched = true };
	const char *key_id;
	struct ask ask;

	if (!visit_read(req, &visit, err) || !visit_claims(req, &visit, err) ||
	    !ask_close(req->tx, req->parked_ask, &ask, err))
		return false;
	key_id = visit.claims.items[0].key_id;
	if (is_proved_departure(req, &visit, &ask))
		return take(req, &visit, &visit.sender, err);
	return learn_key(req, key_id, &ask, err) && tx_commit(req->tx, err) &&
	    decide(req, &visit, err);
}

/* The actor's own document has come: with its inbox the Follow is complete. */
static bool inbox_introduced(struct request *req, struct err *err)
{
	struct visit visit = { .fetched = true };
	struct key_document document;
	struct ask ask;

	if (!visit_read(req, &visit, err) || !visit_claims(req, &visit, err) ||
	    !ask_close(req->tx, req->parked_ask, &ask, err))
		return false;
	if (!ask_answered(&ask, 200))
		return refuse_for_now(err);
	return actor_inboxes_read(req->arena, text_of(&ask),
		   visit.activity.actor, NULL, &document, err) &&
	    remote_actor_inboxes(req->tx, &document, err) &&
	    decide(req, &visit, err);
}

/* clang-format off */
const struct route inbox_routes[] = {
	{ "POST", "/inbox",             INBOX, BODY_MAX, DELIVERIES_MAX, MINUTE_MS, inbox_post },
	{ "POST", "/actor/inbox",       INBOX, BODY_MAX, DELIVERIES_MAX, MINUTE_MS, inbox_post },
	{ "POST", "/users/:name/inbox", INBOX, BODY_MAX, DELIVERIES_MAX, MINUTE_MS, inbox_post },
	{ .method = NULL }
};
/* clang-format on */

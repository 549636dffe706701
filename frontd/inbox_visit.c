#include "frontd/inbox_visit.h"

#include "common/base/clock.h"
#include "frontd/inbox.sql.h"

static bool recipient_read(
    struct request *req, struct visit *visit, struct err *err)
{
	visit->is_shared = strcmp(req->head->path, "/inbox") == 0;
	if (visit->is_shared)
		return fediverse_check(req->tx, err);
	return actor_of_path(req, &visit->recipient, err) &&
	    (!visit->recipient.deleted_at ||
		err_set(err, ERR_GONE, "The actor is deleted"));
}

struct is_blocked {
	bool blocked;
};

static const struct shape is_blocked_shape[] = {
	SHAPE(BOOL, struct is_blocked, blocked, NULL),
	SHAPE_END(struct is_blocked),
};

/* Before any key is looked at: nobody asks a blocked server for one. */
static bool sender_allowed(
    struct request *req, const struct visit *visit, struct err *err)
{
	struct is_blocked row;

	return sql_one(req->tx, &SQL_inbox_blocked, is_blocked_shape, &row, err,
		   v_text(strstr(visit->activity.origin, "://") + 3)) &&
	    (!row.blocked || err_set(err, ERR_FORBIDDEN, "blocked"));
}

bool visit_read(struct request *req, struct visit *visit, struct err *err)
{
	return recipient_read(req, visit, err) &&
	    activity_read(req->arena, req->body, &visit->activity, err) &&
	    sender_allowed(req, visit, err);
}

/* ---- signatures ---- */

static bool claims_read(
    struct request *req, struct visit *visit, struct err *err)
{
	const struct origin *ours = &req->node->origin;
	const struct sig_message message = {
		.method = req->head->method,
		.scheme = ours->plain ? "http" : "https",
		.target = req->head->target,
		.headers = req->head->headers,
		.header_count = req->head->header_count,
		.body = req->body,
	};
	const char *authority = sig_authority(req->arena, &message);

	if (!sig_read(req->arena, &message, clock_wall_ms() / 1000,
		&visit->claims, err))
		return false;
	/* Else what was signed for another server could be passed on to us. */
	if (!authority || strcmp(authority, strstr(ours->text, "://") + 3) != 0)
		return err_set(
		    err, ERR_UNAUTHORIZED, "signed for another host");
	return true;
}

/* Only keys of the actor's own server count, and are ever fetched. */
static bool is_of_sender(struct request *req, const struct visit *visit,
    const struct sig_claim *claim)
{
	struct origin origin;

	return strlen(claim->key_id) <= ACTIVITY_URL_MAX &&
	    origin_parse(req->arena, claim->key_id, &origin) &&
	    strcmp(origin.text, visit->activity.origin) == 0 &&
	    strcmp(origin.text, req->node->origin.text) != 0;
}

static bool claims_keep(
    struct request *req, struct visit *visit, struct err *err)
{
	struct sig_claims *claims = &visit->claims;
	size_t kept = 0;

	for (size_t i = 0; i < claims->count; i++)
		if (is_of_sender(req, visit, &claims->items[i]))
			claims->items[kept++] = claims->items[i];
	claims->count = kept;
	return kept > 0 ||
	    err_set(err, ERR_UNAUTHORIZED, "the key is not the actor's");
}

bool visit_claims(struct request *req, struct visit *visit, struct err *err)
{
	return claims_read(req, visit, err) && claims_keep(req, visit, err);
}

/* ---- keys ---- */

static bool claim_check(
    const struct sig_claim *claim, const struct remote_key *key)
{
	struct pkey *pkey;
	struct err err;
	bool fits;

	if (!pkey_public(key->pem, &pkey, &err))
		return false;
	fits = sig_check(claim, pkey, &err);
	pkey_free(&pkey);
	return fits;
}

enum key_verdict key_judge(const struct visit *visit,
    const struct sig_claim *claim, const struct remote_key *key)
{
	int64_t age_ms;

	if (!key->pem)
		return KEY_UNKNOWN;
	if (strcmp(key->owner, visit->activity.actor) != 0 ||
	    !claim_check(claim, key))
		return KEY_DIFFERS;
	age_ms = clock_wall_ms() - key->fetched_at;
	return age_ms < REMOTE_KEY_KEPT_MS ? KEY_FITS : KEY_OLD;
}

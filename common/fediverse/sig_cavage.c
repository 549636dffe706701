#include "common/crypto/digest.h"
#include "common/fediverse/sig_base.h"
#include "common/fediverse/sig_style.h"
#include "common/net/http_date.h"

enum { NAME_LEN_MAX = 32, DIGITS_MAX = 15 };

/* What the header may hold; other members are nobody's business. */
enum member {
	KEY_ID,
	ALGORITHM,
	CREATED,
	EXPIRES,
	COVERED,
	SIGNATURE,
	MEMBERS
};

static const char *const names[MEMBERS] = { "keyId", "algorithm", "created",
	"expires", "headers", "signature" };

static bool malformed(struct err *err)
{
	return err_set(err, ERR_INVALID, "signature malformed");
}

/* name="text" or name=123; *at moves behind it. */
static bool read_member(
    struct arena *arena, const char **at, const char **name, const char **value)
{
	size_t len = strcspn(*at, "= \t,\"");
	const char *from = *at + len + 1;

	if (!len || (*at)[len] != '=')
		return false;
	*name = arena_textn(arena, *at, len);
	if (*from == '"') {
		len = strcspn(++from, "\"");
		*at = from + len + 1;
		if (from[len] != '"')
			return false;
	} else {
		len = strspn(from, "0123456789");
		*at = from + len;
		if (!len)
			return false;
	}
	*value = arena_textn(arena, from, len);
	return true;
}

static bool keep(
    const char *name, const char *value, const char *values[MEMBERS])
{
	for (size_t i = 0; i < MEMBERS; i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		if (values[i])
			return false;
		values[i] = value;
	}
	return true;
}

static bool read_all(
    struct arena *arena, const char *text, const char *values[MEMBERS])
{
	const char *name;
	const char *value;

	for (;;) {
		text += strspn(text, " \t");
		if (!read_member(arena, &text, &name, &value) ||
		    !keep(name, value, values))
			return false;
		text += strspn(text, " \t");
		if (!*text)
			return true;
		if (*text++ != ',')
			return false;
	}
}

static bool whole(const char *text, int64_t *number)
{
	size_t len = text ? strlen(text) : 0;

	*number = 0;
	if (len > DIGITS_MAX || (text && strspn(text, "0123456789") != len))
		return false;
	for (size_t i = 0; i < len; i++)
		*number = *number * 10 + (text[i] - '0');
	return true;
}

static bool covers(const struct sig_cavage *params, const char *name)
{
	size_t len = strlen(name);
	const char *at = params->covered;

	for (; (at = strstr(at, name)); at += len)
		if ((at == params->covered || at[-1] == ' ') &&
		    (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

/* hs2019 says that the key decides, and so does silence. */
static bool algorithm_check(const struct sig_cavage *params, struct err *err)
{
	const char *name = params->algorithm;
	bool fixed = name && strcmp(name, "hs2019") != 0;

	if (fixed && strcmp(name, "rsa-sha256") != 0 &&
	    strcmp(name, "ed25519") != 0)
		return err_set(
		    err, ERR_UNAUTHORIZED, "algorithm not supported");
	if (fixed &&
	    (covers(params, "(created)") || covers(params, "(expires)")))
		return err_set(err, ERR_UNAUTHORIZED,
		    "(created)/(expires) not allowed with %s", name);
	return true;
}

static bool coverage_check(const struct sig_message *message,
    const struct sig_cavage *params, struct err *err)
{
	const char *missing = NULL;

	if (!covers(params, "(request-target)"))
		missing = "(request-target) not covered";
	else if (!covers(params, "host"))
		missing = "host not covered";
	else if (!covers(params, "date") && !covers(params, "(created)"))
		missing = "neither date nor (created) covered";
	else if (sig_has_body(message) && !covers(params, "digest"))
		missing = "digest not covered";
	return !missing || err_set(err, ERR_UNAUTHORIZED, "%s", missing);
}

static bool times_check(struct arena *arena, const struct sig_message *message,
    const struct sig_cavage *params, int64_t now_s, struct err *err)
{
	const char *date = sig_field(arena, message, "date");
	int64_t date_s = 0;

	if (covers(params, "date") && (!date || !http_date_read(date, &date_s)))
		return err_set(err, ERR_INVALID, "date malformed");
	if (covers(params, "date") &&
	    !sig_time_check(date_s, now_s, "date", err))
		return false;
	if (covers(params, "(created)") &&
	    !sig_time_check(params->created_s, now_s, "created", err))
		return false;
	if (params->expires_s && params->expires_s < now_s)
		return err_set(err, ERR_UNAUTHORIZED, "expired");
	return true;
}

/* A name that is covered twice would be signed twice, which is harmless. */
static bool bases_make(struct arena *arena, const struct sig_message *message,
    const struct sig_cavage *params, struct sig_claim *claim, struct err *err)
{
	claim->bases[0] = sig_cavage_base(arena, message, params, true);
	if (!claim->bases[0])
		return err_set(
		    err, ERR_UNAUTHORIZED, "a covered field is absent");
	if (strchr(message->target, '?'))
		claim->bases[1] =
		    sig_cavage_base(arena, message, params, false);
	return true;
}

bool sig_cavage_read(struct arena *arena, const struct sig_message *message,
    int64_t now_s, struct sig_claims *claims, struct err *err)
{
	const char *values[MEMBERS] = { NULL };
	struct sig_cavage params = { .covered = "(created)" };
	struct sig_claim claim = { .style = SIG_CAVAGE };

	if (!read_all(arena, sig_field(arena, message, "signature"), values) ||
	    !whole(values[CREATED], &params.created_s) ||
	    !whole(values[EXPIRES], &params.expires_s))
		return malformed(err);
	if (!values[KEY_ID] || !*values[KEY_ID] || !values[SIGNATURE] ||
	    !*values[SIGNATURE])
		return err_set(err, ERR_INVALID, "keyId or signature missing");
	if (!base64_read(arena, values[SIGNATURE], strlen(values[SIGNATURE]),
		&claim.signature))
		return malformed(err);
	params.key_id = claim.key_id = values[KEY_ID];
	params.algorithm = claim.algorithm = values[ALGORITHM];
	if (values[COVERED])
		params.covered = values[COVERED];
	if (!algorithm_check(&params, err) ||
	    !coverage_check(message, &params, err) ||
	    !times_check(arena, message, &params, now_s, err) ||
	    (sig_has_body(message) && !sig_digest_check(arena, message, err)) ||
	    !bases_make(arena, message, &params, &claim, err))
		return false;
	claims->items[0] = claim;
	claims->count = 1;
	return true;
}

bool sig_cavage_fits(const struct sig_claim *claim, enum pkey_type type)
{
	const char *name = claim->algorithm;

	if (!name || strcmp(name, "hs2019") == 0)
		return true;
	return strcmp(name, type == PKEY_RSA ? "rsa-sha256" : "ed25519") == 0;
}

const char *sig_cavage_make(struct arena *arena,
    const struct sig_message *message, const struct sig_maker *maker)
{
	const struct sig_cavage params = {
		.key_id = maker->key_id,
		.algorithm = "rsa-sha256",
		.covered = sig_has_body(message)
		    ? "(request-target) host date digest content-type"
		    : "(request-target) host date",
	};
	const char *base = sig_cavage_base(arena, message, &params, true);
	struct bytes signature;

	assert(base);
	signature =
	    pkey_sign(arena, maker->key, (struct bytes){ base, strlen(base) });
	return arena_printf(arena,
	    "keyId=\"%s\",algorithm=\"%s\",headers=\"%s\",signature=\"%s\"",
	    params.key_id, params.algorithm, params.covered,
	    base64_text(arena, signature));
}

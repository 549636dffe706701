#include "common/crypto/digest.h"
#include "common/fediverse/sig_base.h"
#include "common/fediverse/sig_field.h"
#include "common/fediverse/sig_style.h"

static bool covers(const struct field_member *input, const char *name)
{
	for (size_t i = 0; i < input->count; i++)
		if (input->elements[i].params.count == 0 &&
		    strcmp(input->elements[i].item.text, name) == 0)
			return true;
	return false;
}

/* Components are texts, and each occurs once. */
static bool components_check(const struct field_member *input, struct err *err)
{
	for (size_t i = 0; i < input->count; i++) {
		if (input->elements[i].item.kind != FIELD_TEXT)
			return err_set(
			    err, ERR_INVALID, "signature-input malformed");
		for (size_t j = 0; j < i; j++)
			if (strcmp(input->elements[i].raw,
				input->elements[j].raw) == 0)
				return err_set(
				    err, ERR_INVALID, "duplicate component");
	}
	return true;
}

static bool target_covered(
    const struct sig_message *message, const struct field_member *input)
{
	return covers(input, "@target-uri") ||
	    (covers(input, "@authority") && covers(input, "@path") &&
		(!strchr(message->target, '?') || covers(input, "@query")));
}

static bool coverage_check(const struct sig_message *message,
    const struct field_member *input, struct err *err)
{
	const char *missing = NULL;

	if (!covers(input, "@method"))
		missing = "@method not covered";
	else if (!target_covered(message, input))
		missing = "target not covered";
	else if (sig_has_body(message) && !covers(input, "content-digest"))
		missing = "content-digest not covered";
	return !missing || err_set(err, ERR_UNAUTHORIZED, "%s", missing);
}

/* NULL: absent or of another type. */
static const char *text_param(
    const struct field_member *input, const char *name)
{
	const struct field_item *item = field_param(&input->params, name);

	return item && item->kind == FIELD_TEXT && *item->text ? item->text
							       : NULL;
}

static bool times_check(
    const struct field_member *input, int64_t now_s, struct err *err)
{
	const struct field_item *created =
	    field_param(&input->params, "created");
	const struct field_item *expires =
	    field_param(&input->params, "expires");

	if (!created || created->kind != FIELD_WHOLE)
		return err_set(err, ERR_INVALID, "created missing");
	if (expires && expires->kind != FIELD_WHOLE)
		return err_set(err, ERR_INVALID, "signature-input malformed");
	if (!sig_time_check(created->whole, now_s, "created", err))
		return false;
	return !expires || expires->whole >= now_s ||
	    err_set(err, ERR_UNAUTHORIZED, "expired");
}

static bool claim_read(struct arena *arena, const struct sig_message *message,
    const struct field_member *input, int64_t now_s, struct err *err)
{
	if (!input->is_list)
		return err_set(err, ERR_INVALID, "signature-input malformed");
	if (!components_check(input, err))
		return false;
	if (!text_param(input, "keyid"))
		return err_set(err, ERR_INVALID, "keyid missing");
	return times_check(input, now_s, err) &&
	    coverage_check(message, input, err) &&
	    (!sig_has_body(message) ||
		sig_content_digest_check(arena, message, err));
}

static bool claim_make(struct arena *arena, const struct sig_message *message,
    const struct field_member *input, const struct field_members *signatures,
    struct sig_claim *claim, struct err *err)
{
	const struct field_member *signature =
	    field_find(signatures, input->name);

	if (!signature || signature->is_list ||
	    signature->item.kind != FIELD_BYTES)
		return err_set(err, ERR_INVALID, "label without signature");
	*claim = (struct sig_claim){
		.style = SIG_RFC9421,
		.label = input->name,
		.key_id = text_param(input, "keyid"),
		.algorithm = text_param(input, "alg"),
		.bases = { sig_rfc9421_base(arena, message, input->raw) },
		.signature = signature->item.bytes,
	};
	return claim->bases[0] ||
	    err_set(err, ERR_UNAUTHORIZED, "a covered field is absent");
}

bool sig_rfc9421_read(struct arena *arena, const struct sig_message *message,
    int64_t now_s, struct sig_claims *claims, struct err *err)
{
	const char *text = sig_field(arena, message, "signature");
	struct field_members inputs;
	struct field_members signatures;
	struct err first = { 0 };

	if (!field_dictionary(
		arena, sig_field(arena, message, "signature-input"), &inputs))
		return err_set(err, ERR_INVALID, "signature-input malformed");
	if (!text || !field_dictionary(arena, text, &signatures))
		return err_set(err, ERR_INVALID, "signature malformed");
	for (size_t i = 0; i < inputs.count; i++) {
		const struct field_member *input = &inputs.items[i];
		struct err refused = { 0 };

		if (claims->count < SIG_CLAIMS_MAX &&
		    claim_read(arena, message, input, now_s, &refused) &&
		    claim_make(arena, message, input, &signatures,
			&claims->items[claims->count], &refused))
			claims->count++;
		else if (!first.code)
			first = refused;
	}
	if (claims->count)
		return true;
	*err = first;
	return false;
}

bool sig_rfc9421_fits(const struct sig_claim *claim, enum pkey_type type)
{
	return !claim->algorithm ||
	    strcmp(claim->algorithm,
		type == PKEY_RSA ? "rsa-v1_5-sha256" : "ed25519") == 0;
}

const char *sig_rfc9421_make(struct arena *arena,
    const struct sig_message *message, const struct sig_maker *maker,
    const char **input)
{
	const char *params = arena_printf(arena,
	    "(\"@method\" \"@target-uri\"%s);created=%" PRId64 ";keyid=\"%s\"",
	    sig_has_body(message) ? " \"content-digest\"" : "", maker->now_s,
	    maker->key_id);
	const char *base = sig_rfc9421_base(arena, message, params);
	struct bytes signature;

	assert(base);
	signature =
	    pkey_sign(arena, maker->key, (struct bytes){ base, strlen(base) });
	*input = arena_printf(arena, "sig1=%s", params);
	return arena_printf(arena, "sig1=:%s:", base64_text(arena, signature));
}

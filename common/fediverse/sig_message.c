#include "common/fediverse/sig_message.h"

#include <strings.h>

#include "common/base/buf.h"
#include "common/crypto/digest.h"
#include "common/fediverse/sig_field.h"

enum { FIELD_BYTES_MAX = 64 * 1024 };

static const struct {
	const char *name;
	enum digest_kind kind;
} digests[] = {
	{ "sha-256", DIGEST_SHA256 },
	{ "sha-512", DIGEST_SHA512 },
};

static const char *trimmed(struct arena *arena, const char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	return arena_textn(arena, text, len);
}

const char *sig_field(
    struct arena *arena, const struct sig_message *message, const char *name)
{
	const char *joined = NULL;

	for (size_t i = 0; i < message->header_count; i++) {
		const struct http_header *header = &message->headers[i];
		const char *value;

		if (strcasecmp(header->name, name) != 0)
			continue;
		value = trimmed(arena, header->value);
		joined = joined ? arena_printf(arena, "%s, %s", joined, value)
				: value;
	}
	return joined;
}

const char *sig_authority(
    struct arena *arena, const struct sig_message *message)
{
	const char *host = sig_field(arena, message, "host");
	const char *port =
	    strcmp(message->scheme, "http") == 0 ? ":80" : ":443";
	char *lower;
	size_t len;

	if (!host)
		return NULL;
	lower = arena_text(arena, host);
	for (char *c = lower; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	len = strlen(lower);
	if (len > strlen(port) && strcmp(lower + len - strlen(port), port) == 0)
		lower[len - strlen(port)] = '\0';
	return lower;
}

bool sig_has_body(const struct sig_message *message)
{
	return message->body.len > 0 || *message->method == 'P';
}

static const char *sha256_text(struct arena *arena, struct bytes body)
{
	struct digest digest = digest_of(DIGEST_SHA256, body);

	return base64_text(arena, (struct bytes){ digest.bytes, digest.len });
}

const char *sig_digest(struct arena *arena, struct bytes body)
{
	return arena_printf(arena, "SHA-256=%s", sha256_text(arena, body));
}

const char *sig_content_digest(struct arena *arena, struct bytes body)
{
	return arena_printf(arena, "sha-256=:%s:", sha256_text(arena, body));
}

/* 1: fits, 0: not a known algorithm, -1: another body's. */
static int fits(const char *algorithm, struct bytes claimed, struct bytes body)
{
	for (size_t i = 0; i < COUNT(digests); i++) {
		struct digest digest;

		if (strcasecmp(digests[i].name, algorithm) != 0)
			continue;
		digest = digest_of(digests[i].kind, body);
		return digest_equal(&digest, claimed) ? 1 : -1;
	}
	return 0;
}

/* "SHA-256=...,SHA-512=..."; what is not Base64 fits no body. */
bool sig_digest_check(
    struct arena *arena, const struct sig_message *message, struct err *err)
{
	const char *text = sig_field(arena, message, "digest");
	int known = 0;

	if (!text)
		return err_set(err, ERR_UNAUTHORIZED, "digest missing");
	while (*text) {
		size_t len = strcspn(text, ",");
		const char *entry =
		    trimmed(arena, arena_textn(arena, text, len));
		size_t name = strcspn(entry, "=");
		struct bytes claimed = { NULL, 0 };
		int verdict;

		if (!entry[name] ||
		    !base64_read(arena, entry + name + 1,
			strlen(entry + name + 1), &claimed))
			claimed = (struct bytes){ "", 0 };
		verdict = fits(
		    arena_textn(arena, entry, name), claimed, message->body);
		if (verdict < 0)
			return err_set(
			    err, ERR_UNAUTHORIZED, "digest mismatch");
		known += verdict;
		text += len + (text[len] == ',');
	}
	if (!known)
		return err_set(
		    err, ERR_UNAUTHORIZED, "digest has no usable algorithm");
	return true;
}

bool sig_content_digest_check(
    struct arena *arena, const struct sig_message *message, struct err *err)
{
	const char *text = sig_field(arena, message, "content-digest");
	struct field_members members;
	int known = 0;

	if (!text)
		return err_set(err, ERR_UNAUTHORIZED, "content-digest missing");
	if (!field_dictionary(arena, text, &members))
		return err_set(err, ERR_INVALID, "content-digest malformed");
	for (size_t i = 0; i < members.count; i++) {
		const struct field_member *member = &members.items[i];
		int verdict;

		if (member->is_list || member->item.kind != FIELD_BYTES)
			return err_set(
			    err, ERR_INVALID, "content-digest malformed");
		verdict = fits(member->name, member->item.bytes, message->body);
		if (verdict < 0)
			return err_set(
			    err, ERR_UNAUTHORIZED, "content-digest mismatch");
		known += verdict;
	}
	if (!known)
		return err_set(err, ERR_UNAUTHORIZED,
		    "content-digest has no usable algorithm");
	return true;
}

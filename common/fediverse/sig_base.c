#include "common/fediverse/sig_base.h"

#include "common/base/buf.h"
#include "common/fediverse/sig_field.h"

enum { BASE_MAX = 64 * 1024 };

static const char *lower(struct arena *arena, const char *text)
{
	char *copy = arena_text(arena, text);

	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return copy;
}

static const char *path_of(
    struct arena *arena, const struct sig_message *message)
{
	return arena_textn(
	    arena, message->target, strcspn(message->target, "?"));
}

/* ---- draft-cavage ---- */

static const char *cavage_value(struct arena *arena,
    const struct sig_message *message, const struct sig_cavage *params,
    const char *name, bool with_query)
{
	if (strcmp(name, "(request-target)") == 0)
		return arena_printf(arena, "%s %s",
		    lower(arena, message->method),
		    with_query ? message->target : path_of(arena, message));
	if (strcmp(name, "(created)") == 0 && params->created_s)
		return arena_printf(arena, "%" PRId64, params->created_s);
	if (strcmp(name, "(expires)") == 0 && params->expires_s)
		return arena_printf(arena, "%" PRId64, params->expires_s);
	return sig_field(arena, message, name);
}

const char *sig_cavage_base(struct arena *arena,
    const struct sig_message *message, const struct sig_cavage *params,
    bool with_query)
{
	struct buf base;
	const char *at = params->covered;

	buf_init(&base, arena, BASE_MAX);
	while (*at) {
		size_t len = strcspn(at, " ");
		const char *name = lower(arena, arena_textn(arena, at, len));
		const char *value =
		    cavage_value(arena, message, params, name, with_query);

		if (!value)
			return NULL;
		buf_printf(
		    &base, "%s%s: %s", base.len ? "\n" : "", name, value);
		at += len + (at[len] == ' ');
	}
	return base.len && buf_ok(&base) ? base.data : NULL;
}

/* ---- RFC 9421 ---- */

static const char *derive_method(
    struct arena *arena UNUSED, const struct sig_message *message)
{
	return message->method;
}

static const char *derive_target_uri(
    struct arena *arena, const struct sig_message *message)
{
	const char *authority = sig_authority(arena, message);

	return authority ? arena_printf(arena, "%s://%s%s", message->scheme,
			       authority, message->target)
			 : NULL;
}

static const char *derive_scheme(
    struct arena *arena UNUSED, const struct sig_message *message)
{
	return message->scheme;
}

static const char *derive_request_target(
    struct arena *arena UNUSED, const struct sig_message *message)
{
	return message->target;
}

static const char *derive_path(
    struct arena *arena, const struct sig_message *message)
{
	const char *path = path_of(arena, message);

	return *path ? path : "/";
}

/* With its question mark, which stands alone when there is no query. */
static const char *derive_query(
    struct arena *arena UNUSED, const struct sig_message *message)
{
	const char *query = strchr(message->target, '?');

	return query ? query : "?";
}

static const struct {
	const char *name;
	const char *(*value)(
	    struct arena *arena, const struct sig_message *message);
} derived[] = {
	{ "@method", derive_method },
	{ "@target-uri", derive_target_uri },
	{ "@authority", sig_authority },
	{ "@scheme", derive_scheme },
	{ "@request-target", derive_request_target },
	{ "@path", derive_path },
	{ "@query", derive_query },
};

/* One occurrence only, and nothing that would have to be encoded anew. */
static const char *query_param(
    struct arena *arena, const struct sig_message *message, const char *name)
{
	const char *at = strchr(message->target, '?');
	const char *found = NULL;

	while (at && *at) {
		size_t len = strcspn(++at, "&");
		size_t key = strcspn(at, "=&");

		if (key == strlen(name) && strncmp(at, name, key) == 0) {
			if (found || memchr(at, '+', len))
				return NULL;
			key += at[key] == '=';
			found = arena_textn(arena, at + key, len - key);
		}
		at += len;
	}
	return found;
}

static const char *element_value(struct arena *arena,
    const struct sig_message *message, const struct field_element *element)
{
	const char *name = element->item.text;
	const struct field_item *param;

	if (strcmp(name, "@query-param") == 0) {
		param = field_param(&element->params, "name");
		return param && param->kind == FIELD_TEXT &&
			element->params.count == 1
		    ? query_param(arena, message, param->text)
		    : NULL;
	}
	if (element->params.count ||
	    strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
		return NULL;
	for (size_t i = 0; i < COUNT(derived); i++)
		if (strcmp(derived[i].name, name) == 0)
			return derived[i].value(arena, message);
	return *name == '@' ? NULL : sig_field(arena, message, name);
}

const char *sig_rfc9421_base(
    struct arena *arena, const struct sig_message *message, const char *params)
{
	struct field_member list;
	struct buf base;

	if (!field_list(arena, params, &list))
		return NULL;
	buf_init(&base, arena, BASE_MAX);
	for (size_t i = 0; i < list.count; i++) {
		const struct field_element *element = &list.elements[i];
		const char *value;

		if (element->item.kind != FIELD_TEXT)
			return NULL;
		value = element_value(arena, message, element);
		if (!value)
			return NULL;
		buf_printf(&base, "%s: %s\n", element->raw, value);
	}
	buf_printf(&base, "\"@signature-params\": %s", params);
	return buf_ok(&base) ? base.data : NULL;
}

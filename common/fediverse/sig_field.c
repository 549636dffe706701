#include "common/fediverse/sig_field.h"

#include "common/crypto/digest.h"

enum { DIGITS_MAX = 15 };

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* What is left to read. */
struct reader {
	struct arena *arena;
	const char *at;
};

static bool take(struct reader *in, char c)
{
	if (*in->at != c)
		return false;
	in->at++;
	return true;
}

static void skip(struct reader *in, const char *what)
{
	in->at += strspn(in->at, what);
}

static bool read_name(struct reader *in, const char **name)
{
	size_t len = strspn(in->at, LOWER DIGITS "_-.*");

	if (!len || !strchr(LOWER "*", *in->at))
		return false;
	*name = arena_textn(in->arena, in->at, len);
	in->at += len;
	return true;
}

/* Printable ASCII; only \" and \\ are escapes. */
static bool read_text(struct reader *in, struct field_item *item)
{
	char *text = arena_alloc(in->arena, strlen(in->at) + 1);
	size_t len = 0;

	for (; *in->at && *in->at != '"'; in->at++) {
		if (*in->at == '\\' && *++in->at != '"' && *in->at != '\\')
			return false;
		if (*in->at < ' ' || *in->at > '~')
			return false;
		text[len++] = *in->at;
	}
	item->kind = FIELD_TEXT;
	item->text = text;
	return take(in, '"');
}

static bool read_bytes(struct reader *in, struct field_item *item)
{
	size_t len = strcspn(in->at, ":");

	item->kind = FIELD_BYTES;
	if (!base64_read(in->arena, in->at, len, &item->bytes))
		return false;
	in->at += len;
	return take(in, ':');
}

/* Decimals are none of ours. */
static bool read_whole(struct reader *in, struct field_item *item)
{
	bool minus = take(in, '-');
	size_t len = strspn(in->at, DIGITS);

	if (!len || len > DIGITS_MAX || in->at[len] == '.')
		return false;
	item->kind = FIELD_WHOLE;
	item->whole = 0;
	for (size_t i = 0; i < len; i++)
		item->whole = item->whole * 10 + (in->at[i] - '0');
	if (minus)
		item->whole = -item->whole;
	in->at += len;
	return true;
}

static bool read_flag(struct reader *in, struct field_item *item)
{
	item->kind = FIELD_FLAG;
	item->whole = *in->at == '1';
	return take(in, '0') || take(in, '1');
}

static bool read_token(struct reader *in, struct field_item *item)
{
	size_t len = strspn(in->at, LOWER UPPER DIGITS "!#$%&'*+-.^_`|~:/");

	if (!len || !strchr(LOWER UPPER "*", *in->at))
		return false;
	item->kind = FIELD_TOKEN;
	item->text = arena_textn(in->arena, in->at, len);
	in->at += len;
	return true;
}

static bool read_item(struct reader *in, struct field_item *item)
{
	if (take(in, '"'))
		return read_text(in, item);
	if (take(in, ':'))
		return read_bytes(in, item);
	if (take(in, '?'))
		return read_flag(in, item);
	if (*in->at && strchr(DIGITS "-", *in->at))
		return read_whole(in, item);
	return read_token(in, item);
}

static bool read_params(struct reader *in, struct field_params *params)
{
	while (take(in, ';')) {
		struct field_param *param = &params->items[params->count];

		skip(in, " ");
		if (params->count == FIELD_PARAMS_MAX ||
		    !read_name(in, &param->name) ||
		    field_param(params, param->name))
			return false;
		param->value = (struct field_item){ FIELD_FLAG, .whole = 1 };
		if (take(in, '=') && !read_item(in, &param->value))
			return false;
		params->count++;
	}
	return true;
}

static bool read_element(struct reader *in, struct field_element *element)
{
	const char *from = in->at;

	if (!read_item(in, &element->item) ||
	    !read_params(in, &element->params))
		return false;
	element->raw = arena_textn(in->arena, from, (size_t)(in->at - from));
	return *in->at == ' ' || *in->at == ')';
}

static bool read_list(struct reader *in, struct field_member *member)
{
	member->is_list = true;
	member->elements = arena_array(
	    in->arena, FIELD_ITEMS_MAX, sizeof(struct field_element));
	for (;;) {
		skip(in, " ");
		if (take(in, ')'))
			return true;
		if (member->count == FIELD_ITEMS_MAX ||
		    !read_element(in, &member->elements[member->count]))
			return false;
		member->count++;
	}
}

static bool read_member(struct reader *in, struct field_member *member)
{
	const char *from = in->at;
	bool read = take(in, '(') ? read_list(in, member)
				  : read_item(in, &member->item);

	if (!read || !read_params(in, &member->params))
		return false;
	member->raw = arena_textn(in->arena, from, (size_t)(in->at - from));
	return true;
}

/* A member without a value is a flag, which means nothing to signatures. */
static bool read_named(struct reader *in, struct field_members *members)
{
	struct field_member *member = &members->items[members->count];
	const char *name;

	if (members->count == FIELD_MEMBERS_MAX || !read_name(in, &name) ||
	    field_find(members, name) || !take(in, '=') ||
	    !read_member(in, member))
		return false;
	member->name = name;
	members->count++;
	return true;
}

bool field_dictionary(
    struct arena *arena, const char *text, struct field_members *members)
{
	struct reader in = { arena, text };

	*members = (struct field_members){ .count = 0 };
	skip(&in, " ");
	while (read_named(&in, members)) {
		skip(&in, " \t");
		if (!*in.at)
			return true;
		if (!take(&in, ','))
			return false;
		skip(&in, " \t");
	}
	return false;
}

bool field_list(
    struct arena *arena, const char *text, struct field_member *member)
{
	struct reader in = { arena, text };

	*member = (struct field_member){ .is_list = true };
	return *text == '(' && read_member(&in, member) && !*in.at;
}

const struct field_member *field_find(
    const struct field_members *members, const char *name)
{
	for (size_t i = 0; i < members->count; i++)
		if (strcmp(members->items[i].name, name) == 0)
			return &members->items[i];
	return NULL;
}

const struct field_item *field_param(
    const struct field_params *params, const char *name)
{
	for (size_t i = 0; i < params->count; i++)
		if (strcmp(params->items[i].name, name) == 0)
			return &params->items[i].value;
	return NULL;
}

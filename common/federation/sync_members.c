#include "common/federation/sync_members.h"

#include <string.h>

/* What is left of a text that is cut up. */
struct cut {
	const char *at;
	const char *end;
};

/* Behind the closing quote of the string that begins here. */
static void pass_string(struct cut *cut)
{
	for (cut->at++; cut->at < cut->end && *cut->at != '"'; cut->at++)
		if (*cut->at == '\\')
			cut->at++;
	cut->at = cut->at < cut->end ? cut->at + 1 : cut->end;
}

/* Up to the comma behind the value that begins here. */
static struct bytes take_value(struct cut *cut)
{
	const char *from = cut->at;
	int depth = 0;

	while (cut->at < cut->end && (depth > 0 || *cut->at != ',')) {
		if (*cut->at == '"') {
			pass_string(cut);
			continue;
		}
		depth += *cut->at == '{' || *cut->at == '[';
		depth -= *cut->at == '}' || *cut->at == ']';
		cut->at++;
	}
	return (struct bytes){ from, (size_t)(cut->at - from) };
}

static struct bytes take_name(struct cut *cut)
{
	const char *from = cut->at + 1;

	pass_string(cut);
	return (struct bytes){ from, (size_t)(cut->at - from) - 1 };
}

static struct cut inside(struct bytes text)
{
	struct cut cut = { text.data, (const char *)text.data + text.len };

	if (text.len >= 2 && *cut.at == '{') {
		cut.at++;
		cut.end--;
	}
	return cut;
}

static size_t members_max(struct cut cut)
{
	size_t count = 0;

	for (; cut.at < cut.end; cut.at++)
		count += *cut.at == ':';
	return count;
}

struct sync_members sync_members_of(struct arena *arena, struct bytes text)
{
	struct cut cut = inside(text);
	struct sync_members members = { NULL, 0 };
	size_t max = members_max(cut);

	members.list = arena_array(arena, max, sizeof(*members.list));
	while (cut.at < cut.end && *cut.at == '"' && members.count < max) {
		struct sync_member *member = &members.list[members.count++];

		member->name = take_name(&cut);
		cut.at += cut.at < cut.end; /* the colon */
		member->value = take_value(&cut);
		cut.at += cut.at < cut.end; /* the comma */
	}
	return members;
}

bool sync_member_is(const struct sync_member *member, const char *name)
{
	return member->name.len == strlen(name) &&
	    memcmp(member->name.data, name, member->name.len) == 0;
}

const struct sync_member *sync_member_find(
    const struct sync_members *members, const char *name)
{
	for (size_t i = 0; i < members->count; i++)
		if (sync_member_is(&members->list[i], name))
			return &members->list[i];
	return NULL;
}

const char *sync_member_text(
    struct arena *arena, const struct sync_member *member)
{
	const char *text = member ? member->value.data : NULL;

	if (!text || member->value.len < 2 || *text != '"')
		return NULL;
	return arena_textn(arena, text + 1, member->value.len - 2);
}

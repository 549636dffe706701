#include <sodium.h>

#include "common/base/id.h"
#include "common/chat/profile_text.h"
#include "common/chat/user.h"
#include "common/federation/person.h"

#include "common/federation/person.sql.h"

enum {
	SUFFIXES = 11, /* none, _1 to _10; then a random one */
	TRIES_MAX = 14
};

struct found {
	int64_t place;
	int64_t id;
	bool is_gone;
	bool is_stub;
	const char *display_name;
	const char *avatar;
	const char *avatar_color;
	const char *banner;
	const char *bio;
	const char *replicated_instances;
};

/* clang-format off */
static const struct shape found_shape[] = {
	SHAPE(INT,  struct found, place, NULL),
	SHAPE(ID,   struct found, id, NULL),
	SHAPE(BOOL, struct found, is_gone, NULL),
	SHAPE(BOOL, struct found, is_stub, NULL),
	SHAPE(TEXT, struct found, display_name, NULL),
	SHAPE(TEXT, struct found, avatar, NULL),
	SHAPE(TEXT, struct found, avatar_color, NULL),
	SHAPE(TEXT, struct found, banner, NULL),
	SHAPE(TEXT, struct found, bio, NULL),
	SHAPE(TEXT, struct found, replicated_instances, NULL),
	SHAPE_END(struct found),
};
/* clang-format on */

/* ---- finding ---- */

static void take_found(struct person *person, const struct found *row)
{
	/* A living row wins over the tombstones of the same identity. */
	if (row->is_gone) {
		person->is_gone = !person->id;
		return;
	}
	person->id = row->id;
	person->is_gone = false;
	person->is_stub = row->is_stub;
	person->has_display_name = row->display_name;
	person->has_avatar = row->avatar;
	person->has_avatar_color = row->avatar_color;
	person->has_banner = row->banner;
	person->has_bio = row->bio;
	person->replicated_instances = row->replicated_instances;
}

bool persons_find(struct tx *tx, const struct node *node, struct person *people,
    size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char **hosts = arena_array(arena, count, sizeof(*hosts));
	const char **ids = arena_array(arena, count, sizeof(*ids));
	int64_t *natives = arena_array(arena, count, sizeof(*natives));
	struct rows rows;
	const struct found *found;

	if (count == 0)
		return true;
	for (size_t i = 0; i < count; i++) {
		struct person *p = &people[i];

		p->is_native = strcmp(p->host, node->origin.host) == 0;
		if (p->is_native)
			natives[i] = id_parse(p->home_user_id);
		hosts[i] = p->is_native ? NULL : p->host;
		ids[i] = p->is_native ? NULL : p->home_user_id;
	}
	if (!sql_many(tx, &SQL_persons_find, found_shape, &rows, err,
		v_texts(hosts, count), v_texts(ids, count),
		v_ids(natives, count)))
		return false;
	found = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		take_found(&people[found[i].place - 1], &found[i]);
	return true;
}

/* ---- profiles ---- */

static bool is_empty(const char *text)
{
	return !text || !*text;
}

/* A bare file name lies in the uploads of the person's own node. */
static const char *asset_of(struct arena *arena, const struct person *person,
    const char *asset, const struct origin *source)
{
	if (is_empty(asset))
		return NULL;
	if (!is_web_url(asset) && strcmp(person->host, source->host) != 0)
		return NULL;
	return asset_url(arena, asset, source->text);
}

/* The name a third node has for somebody is not his name. */
static const char *display_name_of(struct arena *arena,
    const struct person *person, const struct origin *source)
{
	const char *name = person->display_name;

	if (is_empty(name) && strcmp(person->host, source->host) == 0)
		name = person->username;
	if (is_empty(name) || strncmp(name, "!deleted:", 9) == 0)
		return NULL;
	return name_neutral(arena, name);
}

static const char *color_of(const struct person *person)
{
	const char *color = person->avatar_color;

	return !is_empty(color) && is_avatar_color(color) ? color : NULL;
}

/* Columns of people, as many as were added. */
struct columns {
	int64_t *ids;
	const char **hosts, **persons, **names;
	const char **display_names, **avatars, **colors, **banners, **bios;
	size_t count;
};

static struct columns columns_new(struct arena *arena, size_t room)
{
	return (struct columns){
		.ids = arena_array(arena, room, sizeof(int64_t)),
		.hosts = arena_array(arena, room, sizeof(char *)),
		.persons = arena_array(arena, room, sizeof(char *)),
		.names = arena_array(arena, room, sizeof(char *)),
		.display_names = arena_array(arena, room, sizeof(char *)),
		.avatars = arena_array(arena, room, sizeof(char *)),
		.colors = arena_array(arena, room, sizeof(char *)),
		.banners = arena_array(arena, room, sizeof(char *)),
		.bios = arena_array(arena, room, sizeof(char *)),
	};
}

static void columns_add(struct columns *c, struct arena *arena,
    const struct person *person, const struct origin *source)
{
	size_t i = c->count++;

	c->ids[i] = person->id;
	c->hosts[i] = person->host;
	c->persons[i] = person->home_user_id;
	if (!source)
		return;
	c->display_names[i] = display_name_of(arena, person, source);
	c->avatars[i] = asset_of(arena, person, person->avatar, source);
	c->colors[i] = color_of(person);
	c->banners[i] = asset_of(arena, person, person->banner, source);
	c->bios[i] = text_cut(arena, person->bio, BIO_MAX);
}

/* Of an account of ours only its own home may tell us more. */
static bool may_tell(const struct person *p, const struct origin *source)
{
	return p->wanted && p->id && !p->is_native &&
	    (p->is_stub || strcmp(p->host, source->host) == 0);
}

static bool lacks_asset(const char *has)
{
	return is_empty(has) || !is_web_url(has);
}

/* Does the event know something that the row lacks? */
static bool adds_something(
    struct arena *arena, const struct person *p, const struct origin *source)
{
	if (is_empty(p->has_display_name) && display_name_of(arena, p, source))
		return true;
	if (is_empty(p->has_avatar_color) && color_of(p))
		return true;
	if (is_empty(p->has_bio) && !is_empty(p->bio))
		return true;
	return (lacks_asset(p->has_avatar) &&
		   asset_of(arena, p, p->avatar, source)) ||
	    (lacks_asset(p->has_banner) &&
		asset_of(arena, p, p->banner, source));
}

static bool hydrate(struct tx *tx, const struct origin *source,
    const struct person *people, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct columns c = columns_new(arena, count);

	for (size_t i = 0; i < count; i++)
		if (may_tell(&people[i], source) &&
		    adds_something(arena, &people[i], source))
			columns_add(&c, arena, &people[i], source);
	return c.count == 0 ||
	    sql_none(tx, &SQL_persons_hydrate, err, v_ids(c.ids, c.count),
		v_texts(c.display_names, c.count), v_texts(c.avatars, c.count),
		v_texts(c.colors, c.count), v_texts(c.banners, c.count),
		v_texts(c.bios, c.count));
}

/* ---- making ---- */

static bool is_missing(const struct person *person)
{
	return person->wanted && !person->id && !person->is_gone &&
	    !person->is_native;
}

static struct columns missing(struct arena *arena, const struct person *people,
    size_t count, const struct origin *source)
{
	struct columns c = columns_new(arena, count);

	for (size_t i = 0; i < count; i++)
		if (is_missing(&people[i]))
			columns_add(&c, arena, &people[i], source);
	return c;
}

/* The local part of a name, lower case. */
static const char *local_part(struct arena *arena, const char *name)
{
	char *local = arena_textn(arena, name, strcspn(name, "@"));

	for (char *c = local; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return local;
}

/* A node may say this only about its own people. */
static bool bind_accounts(struct tx *tx, const struct origin *source,
    const struct person *people, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct columns c = columns_new(arena, count);

	for (size_t i = 0; i < count; i++) {
		const struct person *p = &people[i];

		if (!is_missing(p) || is_empty(p->username) ||
		    strcmp(p->host, source->host) != 0)
			continue;
		c.names[c.count] = local_part(arena, p->username);
		columns_add(&c, arena, p, NULL);
	}
	return c.count == 0 ||
	    sql_none(tx, &SQL_persons_bind, err, v_texts(c.hosts, c.count),
		v_texts(c.persons, c.count), v_texts(c.names, c.count));
}

static const char *suffix_of(struct arena *arena, int attempt)
{
	if (attempt == 0)
		return "";
	if (attempt < SUFFIXES)
		return arena_printf(arena, "_%d", attempt);
	return arena_printf(arena, "_%08" PRIx32, randombytes_random());
}

bool persons_make(struct tx *tx, const struct node *node,
    const struct origin *source, struct person *people, size_t count,
    struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct columns c = missing(arena, people, count, source);

	if (source && c.count &&
	    (!bind_accounts(tx, source, people, count, err) ||
		!persons_find(tx, node, people, count, err)))
		return false;
	for (int attempt = 0; attempt < TRIES_MAX; attempt++) {
		c = missing(arena, people, count, source);
		if (c.count == 0)
			break;
		if (!sql_none(tx, &SQL_persons_insert, err,
			v_texts(c.hosts, c.count), v_texts(c.persons, c.count),
			v_texts(c.display_names, c.count),
			v_texts(c.avatars, c.count), v_texts(c.colors, c.count),
			v_texts(c.banners, c.count), v_texts(c.bios, c.count),
			v_text(suffix_of(arena, attempt))) ||
		    !persons_find(tx, node, people, count, err))
			return false;
	}
	return !source || hydrate(tx, source, people, count, err);
}

/* ---- declared accounts ---- */

void instances_each(struct arena *arena, const char *replicated_instances,
    void (*take)(void *arg, const char *host, int port), void *arg)
{
	const struct json *list;
	struct err err;

	/* Almost everybody has none. */
	if (!replicated_instances || strcmp(replicated_instances, "[]") == 0 ||
	    !json_parse(arena,
		(struct bytes){
		    replicated_instances, strlen(replicated_instances) },
		&list, &err))
		return;
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json *entry = json_element(list, i);
		const char *where = json_string(json_member(entry, "origin"));
		const char *host;
		int port;

		if (!where)
			where = json_string(json_member(entry, "domain"));
		host = where ? instance_host(arena, where, &port) : NULL;
		if (host)
			take(arg, host, port);
	}
}

struct search {
	const struct origin *origin;
	bool hit;
};

static void compare(void *arg, const char *host, int port)
{
	struct search *search = arg;

	if (strcmp(host, search->origin->host) == 0 &&
	    (port == 0 || port == search->origin->port))
		search->hit = true;
}

bool instances_declare(struct arena *arena, const char *replicated_instances,
    const struct origin *origin)
{
	struct search search = { .origin = origin };

	instances_each(arena, replicated_instances, compare, &search);
	return search.hit;
}

#include "frontd/routes.h"

static const struct route *const tables[] = {
	instance_routes,
	auth_routes,
	user_routes,
	dm_routes,
	group_routes,
	reaction_routes,
	read_routes,
	typing_routes,
	peer_routes,
	settings_routes,
	streaming_routes,
	relay_routes,
	sync_routes,
	discovery_routes,
	actor_routes,
	actors_routes,
	enqueue_routes,
	social_routes,
	inbox_routes,
};

/* Next segment of a path; the rest is kept in *path. NULL: no more. */
static struct bytes segment_next(const char **path)
{
	const char *from = *path;
	size_t len;

	if (*from != '/')
		return (struct bytes){ NULL, 0 };
	from++;
	len = strcspn(from, "/");
	*path = from + len;
	return (struct bytes){ from, len };
}

static bool segment_equal(struct bytes a, struct bytes b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static void param_add(struct arena *arena, struct match *match,
    struct bytes name, struct bytes value)
{
	assert(match->param_count < PATH_PARAMS_MAX);
	match->params[match->param_count++] = (struct path_param){
		.name = arena_textn(
		    arena, (const char *)name.data + 1, name.len - 1),
		.value = arena_textn(arena, value.data, value.len),
	};
}

/*
 * Does path fit the pattern? *score has a bit for each literal segment, the
 * first one highest.
 */
static bool route_fits(
    const struct route *route, const char *path, unsigned int *score)
{
	const char *pattern = route->pattern;
	unsigned int bit = 1u << 31;

	*score = 0;
	for (;; bit >>= 1) {
		struct bytes want = segment_next(&pattern);
		struct bytes have = segment_next(&path);

		if (!want.data || !have.data)
			return !want.data && !have.data && !*pattern && !*path;
		if (want.len && *(const char *)want.data == ':') {
			if (!have.len)
				return false;
			continue;
		}
		if (!segment_equal(want, have))
			return false;
		*score |= bit;
	}
}

static void match_fill(struct arena *arena, const struct route *route,
    const char *path, struct match *match)
{
	const char *pattern = route->pattern;

	*match = (struct match){ .route = route };
	for (;;) {
		struct bytes want = segment_next(&pattern);
		struct bytes have = segment_next(&path);

		if (!want.data)
			return;
		if (want.len && *(const char *)want.data == ':')
			param_add(arena, match, want, have);
	}
}

enum route_found route_find(struct arena *arena, const char *method,
    const char *path, struct match *match)
{
	enum route_found found = ROUTE_UNKNOWN;
	const struct route *best = NULL;
	unsigned int best_score = 0;
	unsigned int score;

	for (size_t i = 0; route_at(i); i++) {
		const struct route *route = route_at(i);

		if (!route_fits(route, path, &score))
			continue;
		if (strcmp(route->method, method) != 0) {
			found = best ? found : ROUTE_OTHER_METHOD;
		} else if (!best || score > best_score) {
			best = route;
			best_score = score;
			found = ROUTE_FOUND;
		}
	}
	if (best)
		match_fill(arena, best, path, match);
	return found;
}

const struct route *route_at(size_t place)
{
	for (size_t i = 0; i < COUNT(tables); i++)
		for (const struct route *route = tables[i]; route->method;
		     route++)
			if (place-- == 0)
				return route;
	return NULL;
}

size_t route_place(const struct route *route)
{
	size_t place = 0;

	while (route_at(place) && route_at(place) != route)
		place++;
	return place;
}

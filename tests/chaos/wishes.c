#include "tests/chaos/wishes.h"

#include "common/base/clock.h"

enum { PAGE = 30, BEGIN_MS = 60000 };

/* Percent-encoded, as they stand in a path. */
static const char *const emojis[] = { "%F0%9F%91%8D", "%E2%9D%A4", "x" };

/* ---- asking ---- */

static void tally(struct wisher *w, int status, const char *path,
    const struct plain_answer *answer)
{
	if (status >= 200 && status < 300)
		w->taken++;
	else if (status >= 400 && status < 500)
		w->refused++;
	else if (status == 0 || status > 500)
		w->unknown++;
	else {
		w->faults++;
		fprintf(stderr, "chaos: %s %s: %d %s\n",
		    w->line.person->username, path, status,
		    answer->body ? answer->body : "");
	}
}

static void ask(struct wisher *w, struct arena *arena, const char *method,
    const char *path, const char *body)
{
	struct plain_answer answer;
	int status = line_call(&w->line, arena, method, path, body, &answer);

	tally(w, status, path, &answer);
}

/* What the node shows; NULL: nothing now. */
static const struct json *look(
    struct wisher *w, struct arena *arena, const char *path)
{
	struct plain_answer answer;
	int status = line_call(&w->line, arena, "GET", path, NULL, &answer);

	tally(w, status, path, &answer);
	return status == 200 ? answer.json : NULL;
}

static const struct json *pick(struct wisher *w, const struct json *list)
{
	size_t count = json_count(list);

	return count
	    ? json_element(list, (size_t)dice_below(&w->dice, (int)count))
	    : NULL;
}

static bool is_me(const struct wisher *w, const char *id)
{
	return id && strcmp(id, w->line.person->id) == 0;
}

static const struct json *channel_pick(
    struct wisher *w, struct arena *arena, bool group)
{
	const struct json *list = look(w, arena, "/api/dm");

	for (int tries = 0; tries < 8; tries++) {
		const struct json *channel = pick(w, list);

		if (channel &&
		    (!group || line_text(channel, "ownerId") != NULL))
			return channel;
	}
	return NULL;
}

/* A message of a conversation of his; his own, if so wished. */
static const struct json *message_pick(
    struct wisher *w, struct arena *arena, bool own)
{
	const struct json *channel = channel_pick(w, arena, false);
	const struct json *page;

	if (!channel)
		return NULL;
	page = look(w, arena,
	    arena_printf(arena, "/api/dm/%s/messages?limit=%d",
		line_text(channel, "id"), PAGE));
	for (int tries = 0; tries < 12; tries++) {
		const struct json *message = pick(w, page);

		if (message && (!own || is_me(w, line_text(message, "userId"))))
			return message;
	}
	return NULL;
}

/* ---- messages ---- */

static const char *words(struct wisher *w, struct arena *arena)
{
	return arena_printf(arena, "%d%d-%d", w->side, w->place, w->said++);
}

static void say(struct wisher *w, struct arena *arena)
{
	const struct json *channel = channel_pick(w, arena, false);

	if (channel)
		ask(w, arena, "POST",
		    arena_printf(
			arena, "/api/dm/%s/messages", line_text(channel, "id")),
		    arena_printf(
			arena, "{\"content\":\"%s\"}", words(w, arena)));
}

static void edit(struct wisher *w, struct arena *arena)
{
	const struct json *message = message_pick(w, arena, true);

	if (message)
		ask(w, arena, "PATCH",
		    arena_printf(
			arena, "/api/dm/messages/%s", line_text(message, "id")),
		    arena_printf(
			arena, "{\"content\":\"%s\"}", words(w, arena)));
}

static void take_back(struct wisher *w, struct arena *arena)
{
	const struct json *message = message_pick(w, arena, true);

	if (message)
		ask(w, arena, "DELETE",
		    arena_printf(
			arena, "/api/dm/messages/%s", line_text(message, "id")),
		    NULL);
}

static void react(struct wisher *w, struct arena *arena)
{
	const struct json *message = message_pick(w, arena, false);

	if (message)
		ask(w, arena, dice_below(&w->dice, 3) ? "PUT" : "DELETE",
		    arena_printf(arena, "/api/dm/messages/%s/reactions/%s",
			line_text(message, "id"),
			emojis[dice_below(&w->dice, COUNT(emojis))]),
		    NULL);
}

static void read_up_to(struct wisher *w, struct arena *arena)
{
	const struct json *message = message_pick(w, arena, false);

	if (message)
		ask(w, arena, "POST",
		    arena_printf(arena, "/api/dm/%s/ack",
			line_text(message, "dmChannelId")),
		    arena_printf(arena, "{\"messageId\":\"%s\"}",
			line_text(message, "id")));
}

/* ---- oneself, friends ---- */

static void become(struct wisher *w, struct arena *arena)
{
	const char *name = words(w, arena);

	ask(w, arena, "PATCH", "/api/users/@me",
	    dice_below(&w->dice, 2)
		? arena_printf(arena, "{\"displayName\":\"%s\"}", name)
		: arena_printf(arena, "{\"bio\":\"%s\"}", name));
}

static void befriend(struct wisher *w, struct arena *arena)
{
	const struct json *channel = channel_pick(w, arena, false);
	const struct json *other =
	    channel ? pick(w, json_member(channel, "members")) : NULL;

	if (other && !is_me(w, line_text(other, "id")))
		ask(w, arena, "POST", "/api/social/requests",
		    arena_printf(arena, "{\"username\":\"%s\"}",
			line_text(other, "username")));
}

static void part(struct wisher *w, struct arena *arena)
{
	const struct json *friend =
	    pick(w, look(w, arena, "/api/social/friends"));

	if (friend)
		ask(w, arena, "DELETE",
		    arena_printf(arena, "/api/social/friends/%s",
			line_text(friend, "id")),
		    NULL);
}

static void answer_request(
    struct wisher *w, struct arena *arena, const struct json *request)
{
	const char *path = arena_printf(
	    arena, "/api/social/requests/%s", line_text(request, "id"));

	if (is_me(w, line_text(request, "fromId")))
		ask(w, arena, "DELETE", path, NULL);
	else
		ask(w, arena, "PATCH", path,
		    dice_below(&w->dice, 4) ? "{\"status\":\"accepted\"}"
					    : "{\"status\":\"declined\"}");
}

static void answer_any(struct wisher *w, struct arena *arena)
{
	const struct json *request =
	    pick(w, look(w, arena, "/api/social/requests"));

	if (request)
		answer_request(w, arena, request);
}

/* ---- groups ---- */

static void group_make(struct wisher *w, struct arena *arena)
{
	const struct json *friends = look(w, arena, "/api/social/friends");
	size_t count = json_count(friends);
	size_t from;

	if (count < 2)
		return;
	from = (size_t)dice_below(&w->dice, (int)count);
	ask(w, arena, "POST", "/api/dm/group",
	    arena_printf(arena, "{\"users\":[{\"id\":\"%s\"},{\"id\":\"%s\"}]}",
		line_text(json_element(friends, from), "id"),
		line_text(json_element(friends, (from + 1) % count), "id")));
}

static void group_add(
    struct wisher *w, struct arena *arena, const struct json *group)
{
	const struct json *friend =
	    pick(w, look(w, arena, "/api/social/friends"));

	if (friend)
		ask(w, arena, "POST",
		    arena_printf(
			arena, "/api/dm/%s/members", line_text(group, "id")),
		    arena_printf(
			arena, "{\"userId\":\"%s\"}", line_text(friend, "id")));
}

static void group_change(struct wisher *w, struct arena *arena)
{
	const struct json *group = channel_pick(w, arena, true);
	const struct json *other =
	    group ? pick(w, json_member(group, "members")) : NULL;
	int chance = dice_below(&w->dice, 10);

	if (!other)
		return;
	if (chance < 5)
		group_add(w, arena, group);
	else if (chance < 6)
		ask(w, arena, "DELETE",
		    arena_printf(
			arena, "/api/dm/%s/members", line_text(group, "id")),
		    NULL);
	else if (chance < 8)
		ask(w, arena, "DELETE",
		    arena_printf(arena, "/api/dm/%s/members/%s",
			line_text(group, "id"), line_text(other, "id")),
		    NULL);
	else
		ask(w, arena, "PATCH",
		    arena_printf(arena, "/api/dm/%s", line_text(group, "id")),
		    arena_printf(
			arena, "{\"ownerId\":\"%s\"}", line_text(other, "id")));
}

/* ---- drawing ---- */

/* clang-format off */
static const struct wish {
	int weight;
	void (*act)(struct wisher *w, struct arena *arena);
} wishes[] = {
	{ 34, say },
	{ 10, edit },
	{  6, take_back },
	{ 16, react },
	{  6, read_up_to },
	{  5, become },
	{  4, befriend },
	{  2, part },
	{  5, answer_any },
	{  3, group_make },
	{  9, group_change },
};
/* clang-format on */

void wisher_act(struct wisher *wisher, struct arena *arena)
{
	int sum = 0;
	int drawn;
	size_t i = 0;

	for (size_t j = 0; j < COUNT(wishes); j++)
		sum += wishes[j].weight;
	drawn = dice_below(&wisher->dice, sum);
	while (drawn >= wishes[i].weight)
		drawn -= wishes[i++].weight;
	wisher->acts++;
	wishes[i].act(wisher, arena);
}

/* ---- before anything goes wrong ---- */

static bool meet(struct wisher *w, struct arena *arena,
    const struct side *there, const struct chaos_person *other)
{
	struct plain_answer answer;
	const struct json *members;

	if (!line_insist(&w->line, arena, "/api/dm",
		arena_printf(arena,
		    "{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"}",
		    other->id, there->host),
		&answer))
		return false;
	members = json_member(answer.json, "members");
	for (size_t i = 0; i < json_count(members); i++) {
		const struct json *member = json_element(members, i);

		if (!is_me(w, line_text(member, "id")))
			return line_insist(&w->line, arena,
			    "/api/social/requests",
			    arena_printf(arena, "{\"username\":\"%s\"}",
				line_text(member, "username")),
			    &answer);
	}
	return false;
}

/* Those of later nodes accept what comes from earlier ones. */
static bool accept_all(struct wisher *w, struct arena *arena)
{
	size_t wanted = (size_t)w->side * PEOPLE;
	int64_t until = clock_steady_ms() + BEGIN_MS;

	for (;;) {
		const struct json *requests =
		    look(w, arena, "/api/social/requests");

		for (size_t i = 0; i < json_count(requests); i++) {
			const struct json *request = json_element(requests, i);

			if (!is_me(w, line_text(request, "fromId")))
				ask(w, arena, "PATCH",
				    arena_printf(arena,
					"/api/social/requests/%s",
					line_text(request, "id")),
				    "{\"status\":\"accepted\"}");
		}
		if (json_count(look(w, arena, "/api/social/friends")) >= wanted)
			return true;
		if (chaos_interrupted() || clock_steady_ms() > until)
			return false;
		pause_ms(50);
	}
}

bool wisher_begin(struct wisher *wisher, struct arena *arena)
{
	const struct site *site = wisher->site;
	bool ok = true;

	for (int s = wisher->side + 1; ok && s < site->count; s++)
		for (int p = 0; ok && p < PEOPLE; p++)
			ok = meet(wisher, arena, &site->sides[s],
			    &site->sides[s].people[p]);
	return ok && accept_all(wisher, arena);
}

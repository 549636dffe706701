#include "tests/chaos/people.h"

#include "common/base/clock.h"
#include "tests/chaos/line.h"

enum { READ_BACK_MS = 60000, RECENT = 30, PAGE = 100 };

/* ---- before anything goes wrong ---- */

static bool conversation_open(
    struct site *site, struct side *side, const struct side *there, int pair)
{
	int p = pair / PEOPLE;
	int q = pair % PEOPLE;
	struct line line = { .side = side, .person = &side->people[p] };
	struct plain_answer answer;
	bool ok = line_insist(&line, site->arena, "/api/dm",
	    arena_printf(site->arena,
		"{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"}",
		there->people[q].id, there->host),
	    &answer);

	side->channels[p][q] = line_text(answer.json, "id");
	line_close(&line);
	return ok && side->channels[p][q];
}

bool people_begin(struct site *site, struct err *err)
{
	bool ok = line_people(site);

	for (int s = 0; ok && s < SIDES; s++)
		for (int pair = 0; ok && pair < CONVERSATIONS; pair++)
			ok = conversation_open(
			    site, &site->sides[s], &site->sides[1 - s], pair);
	return ok || err_set(err, ERR_BUG, "the nodes did not come up");
}

bool people_say(const struct side *side, const char *text)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	struct line line = { .side = side, .person = &side->people[0] };
	struct plain_answer answer;
	bool ok = line_insist(&line, arena,
	    arena_printf(arena, "/api/dm/%s/messages", side->channels[0][0]),
	    arena_printf(arena, "{\"content\":\"%s\"}", text), &answer);

	line_close(&line);
	return ok;
}

/* ---- the ledger ---- */

static struct note *note_add(struct actor *actor, const char *content)
{
	struct note *note;

	if (actor->count == actor->room) {
		actor->room = actor->room ? actor->room * 2 : 256;
		actor->notes =
		    realloc(actor->notes, actor->room * sizeof(*actor->notes));
		if (!actor->notes)
			abort();
	}
	note = &actor->notes[actor->count++];
	*note = (struct note){ .state = NOTE_UNSURE };
	snprintf(note->content, sizeof(note->content), "%s", content);
	return note;
}

/* One of the last that certainly exist; NULL: none found by luck. */
static struct note *note_pick(struct actor *actor)
{
	int count = (int)actor->count;
	int recent = count < RECENT ? count : RECENT;

	for (int tries = 0; recent > 0 && tries < 8; tries++) {
		struct note *note =
		    &actor->notes[count - 1 - dice_below(&actor->dice, recent)];

		if (note->state == NOTE_LIVE && !note->maybe[0])
			return note;
	}
	return NULL;
}

static bool is_unknown(int status)
{
	return status == 0 || status >= 500;
}

static void wrong(struct actor *actor, const char *what,
    const struct plain_answer *answer, const struct note *note)
{
	actor->faults++;
	fprintf(stderr, "chaos: %s of %s (%s): %d %s\n", what, note->id,
	    note->content, answer->status, answer->body ? answer->body : "");
}

/* ---- actions ---- */

static const char *channel_of(const struct actor *actor)
{
	return actor->crowd->site->sides[actor->side]
	    .channels[actor->person][actor->other];
}

/* Its id, if it came to be after all. */
static void read_back(struct line *line, struct arena *arena,
    const char *channel, struct note *note)
{
	const char *path =
	    arena_printf(arena, "/api/dm/%s/messages?limit=%d", channel, PAGE);
	int64_t until = clock_steady_ms() + READ_BACK_MS;
	struct plain_answer answer;

	while (line_call(line, arena, "GET", path, NULL, &answer) != 200) {
		if (clock_steady_ms() > until || chaos_interrupted())
			return;
		pause_ms(100);
	}
	for (size_t i = 0; i < json_count(answer.json); i++) {
		const struct json *row = json_element(answer.json, i);
		const char *content = line_text(row, "content");
		const char *id = line_text(row, "id");

		if (!content || !id || strcmp(content, note->content) != 0)
			continue;
		snprintf(note->id, sizeof(note->id), "%s", id);
		note->state = NOTE_LIVE;
	}
}

static void act_write(
    struct actor *actor, struct line *line, struct arena *arena)
{
	const char *content = arena_printf(arena, "%d%d%d-%d", actor->side,
	    actor->person, actor->other, actor->written++);
	const char *path =
	    arena_printf(arena, "/api/dm/%s/messages", channel_of(actor));
	struct note *note = note_add(actor, content);
	struct plain_answer answer;
	int status = line_call(line, arena, "POST", path,
	    arena_printf(arena, "{\"content\":\"%s\"}", content), &answer);
	const char *id = line_text(answer.json, "id");

	if (status == 201 && id) {
		snprintf(note->id, sizeof(note->id), "%s", id);
		note->state = NOTE_LIVE;
	} else if (is_unknown(status)) {
		actor->unknown++;
		read_back(line, arena, channel_of(actor), note);
	} else {
		wrong(actor, "creation", &answer, note);
	}
}

static void act_edit(struct actor *actor, struct line *line,
    struct arena *arena, struct note *note)
{
	const char *content = arena_printf(arena, "%d%d%d-e%d", actor->side,
	    actor->person, actor->other, actor->edits++);
	struct plain_answer answer;
	int status = line_call(line, arena, "PATCH",
	    arena_printf(arena, "/api/dm/messages/%s", note->id),
	    arena_printf(arena, "{\"content\":\"%s\"}", content), &answer);

	if (status == 200) {
		snprintf(note->content, sizeof(note->content), "%s", content);
	} else if (is_unknown(status)) {
		actor->unknown++;
		snprintf(note->maybe, sizeof(note->maybe), "%s", content);
	} else {
		wrong(actor, "edit", &answer, note);
	}
}

static void act_delete(struct actor *actor, struct line *line,
    struct arena *arena, struct note *note)
{
	struct plain_answer answer;
	int status = line_call(line, arena, "DELETE",
	    arena_printf(arena, "/api/dm/messages/%s", note->id), NULL,
	    &answer);

	if (status == 200) {
		note->state = NOTE_GONE;
	} else if (is_unknown(status)) {
		actor->unknown++;
		note->state = NOTE_UNSURE;
	} else {
		wrong(actor, "deletion", &answer, note);
	}
}

static void act(struct actor *actor, struct line *line, struct arena *arena)
{
	int chance = dice_below(&actor->dice, 100);
	struct note *note = chance < 50 ? NULL : note_pick(actor);

	actor->acts++;
	if (!note)
		act_write(actor, line, arena);
	else if (chance < 82)
		act_edit(actor, line, arena, note);
	else
		act_delete(actor, line, arena, note);
}

static void *actor_run(void *arg)
{
	struct actor *actor = arg;
	struct crowd *crowd = actor->crowd;
	const struct side *side = &crowd->site->sides[actor->side];
	struct line line = { .side = side,
		.person = &side->people[actor->person] };
	struct arena *arena = arena_new();

	while (!chaos_interrupted() && crowd->left-- > 0) {
		act(actor, &line, arena);
		arena_reset(arena);
		pause_ms(dice_below(&actor->dice, 2 * crowd->think_ms + 1));
	}
	line_close(&line);
	arena_free(&arena);
	crowd->running--;
	return NULL;
}

/* ---- */

void crowd_init(struct crowd *crowd, const struct site *site, uint64_t seed)
{
	*crowd = (struct crowd){ .site = site };
	for (int i = 0; i < ACTORS; i++)
		crowd->actors[i] = (struct actor){
			.crowd = crowd,
			.side = i / CONVERSATIONS,
			.person = i / PEOPLE % PEOPLE,
			.other = i % PEOPLE,
			.dice = { seed * 1000 + (uint64_t)i },
		};
}

void crowd_start(struct crowd *crowd, int rounds, int ms)
{
	crowd->left = rounds;
	crowd->running = ACTORS;
	crowd->think_ms = (int)((int64_t)ms * ACTORS / (rounds + 1));
	for (int i = 0; i < ACTORS; i++)
		if (pthread_create(&crowd->actors[i].thread, NULL, actor_run,
			&crowd->actors[i]))
			abort();
}

void crowd_stop(struct crowd *crowd)
{
	crowd->left = 0;
}

bool crowd_is_done(const struct crowd *crowd)
{
	return crowd->running == 0;
}

void crowd_join(struct crowd *crowd)
{
	for (int i = 0; i < ACTORS; i++)
		pthread_join(crowd->actors[i].thread, NULL);
}

void crowd_done(struct crowd *crowd)
{
	for (int i = 0; i < ACTORS; i++)
		free(crowd->actors[i].notes);
}

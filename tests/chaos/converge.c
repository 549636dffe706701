#include "tests/chaos/converge.h"

#include "tests/chaos/check.h"
#include "tests/chaos/play.h"
#include "tests/chaos/state.h"
#include "tests/chaos/wishes.h"
#include "tests/lib/test_db.h"

/* What a node cannot know yet is refused a few times; its tries must last. */
enum { WISHERS = SIDES_MAX * (PEOPLE + 1), RETRY_EVERY_MS = 10000 };

struct company {
	struct site *site;
	struct chaos_person guests[SIDES_MAX]; /* accounts on the next node */
	struct wisher wishers[WISHERS];
	int count;
	_Atomic int left;
	_Atomic int running;
	int think_ms;
};

struct part {
	struct company *company;
	struct wisher *wisher;
	pthread_t thread;
};

/* ---- people ---- */

static void *part_run(void *arg)
{
	struct part *part = arg;
	struct company *company = part->company;
	struct arena *arena = arena_new();

	while (!chaos_interrupted() && company->left-- > 0) {
		wisher_act(part->wisher, arena);
		arena_reset(arena);
		pause_ms(
		    dice_below(&part->wisher->dice, 2 * company->think_ms + 1));
	}
	arena_free(&arena);
	company->running--;
	return NULL;
}

static bool company_is_done(const void *people)
{
	const struct company *company = people;

	return company->running == 0;
}

static void wisher_add(struct company *company, int side, int place,
    const struct chaos_person *person, uint64_t seed)
{
	struct wisher *wisher = &company->wishers[company->count];

	*wisher = (struct wisher){
		.site = company->site,
		.side = side,
		.place = place,
		.line = { .side = &company->site->sides[side],
		    .person = person },
		.dice = { seed * 100 + (uint64_t)company->count++ },
	};
}

/* The first person of a side has an account on the next one, too. */
static bool guest_begin(struct company *company, int side)
{
	struct site *site = company->site;
	struct side *home = &site->sides[side];
	struct side *there = &site->sides[(side + 1) % site->count];
	const struct chaos_person *person = &home->people[0];
	struct chaos_person *guest = &company->guests[side];
	struct line line = { .side = there };
	struct plain_answer answer;
	bool ok;

	guest->username =
	    arena_printf(site->arena, "%s@%s", person->username, home->host);
	ok = line_insist(&line, site->arena, "/api/auth/register",
	    arena_printf(site->arena,
		"{\"username\":\"%s\",\"password\":\"correct-horse\","
		"\"homeInstance\":\"%s\",\"homeUserId\":\"%s\"}",
		guest->username, home->host, person->id),
	    &answer);
	guest->token = line_text(answer.json, "token");
	guest->id = line_text(json_member(answer.json, "user"), "id");
	line_close(&line);
	line = (struct line){ .side = home, .person = person };
	ok = ok && guest->token && guest->id &&
	    line_call(&line, site->arena, "PATCH", "/api/users/@me",
		arena_printf(site->arena,
		    "{\"replicatedInstances\":[{\"origin\":\"%s\","
		    "\"username\":\"%s\"}]}",
		    proxy_origin(there->proxy), guest->username),
		&answer) == 200;
	line_close(&line);
	return ok;
}

static bool company_begin(
    struct company *company, struct site *site, uint64_t seed, bool guests)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	bool ok = line_people(site);
	int natives;

	*company = (struct company){ .site = site };
	for (int s = 0; s < site->count; s++)
		for (int p = 0; p < PEOPLE; p++)
			wisher_add(
			    company, s, p, &site->sides[s].people[p], seed);
	natives = company->count;
	for (int s = 0; ok && guests && s < site->count; s++) {
		ok = guest_begin(company, s);
		wisher_add(company, (s + 1) % site->count, PEOPLE,
		    &company->guests[s], seed);
	}
	for (int i = 0; ok && i < natives; i++)
		ok = wisher_begin(&company->wishers[i], arena);
	return ok;
}

/* ---- the end ---- */

static int differences(const struct site *site, struct err *err)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	struct rows lines[SIDES_MAX];
	int found = 0;

	for (int s = 0; s < site->count; s++)
		if (!state_read(&site->sides[s], arena, &lines[s], err))
			return -1;
	for (int a = 0; a < site->count; a++)
		for (int b = 0; b < site->count; b++)
			if (a != b)
				found += state_differences(&site->sides[a],
				    &lines[a], &site->sides[b], &lines[b]);
	return found;
}

/* Not wrong by themselves: a peer may refuse what has become void meanwhile. */
static int dead_letters(const struct site *site)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	int dead = 0;

	for (int s = 0; s < site->count; s++) {
		const struct side *side = &site->sides[s];
		int64_t count =
		    side_number(side, "SELECT count(*) AS n FROM dead_letters");

		if (count > 0)
			check_say("dead letters", side->name,
			    test_db_text(arena, side->database,
				"SELECT string_agg(concat_ws(' ', event_type,"
				" why, peer_answer), ', ') AS t"
				" FROM dead_letters"));
		dead += (int)count;
	}
	return dead;
}

static bool report(const struct company *company, int differing,
    int64_t recovery_ms, const struct options *options)
{
	const struct site *site = company->site;
	int acts = 0, taken = 0, unknown = 0, wrong = 0;
	int dead = dead_letters(site);
	bool good;

	for (int i = 0; i < company->count; i++) {
		acts += company->wishers[i].acts;
		taken += company->wishers[i].taken;
		unknown += company->wishers[i].unknown;
		wrong += company->wishers[i].faults;
	}
	good = differing == 0 && recovery_ms >= 0 && !wrong &&
	    !site->unexpected && !site_reports(site);
	printf("scenario=converge seed=%" PRIu64
	       " nodes=%d actions=%d taken=%d unknown=%d wrong=%d starts=%d"
	       " recovery_ms=%" PRId64
	       " differing=%d dead=%d unexpected=%d verdict=%s\n",
	    options->seed, site->count, acts, taken, unknown, wrong,
	    site->starts, recovery_ms, differing, dead, site->unexpected,
	    good ? "good" : "bad");
	return good;
}

static bool play(
    struct company *company, const struct options *options, struct err *err)
{
	struct part parts[WISHERS];
	struct faults faults;
	int64_t recovery_ms, people_ms;
	int ms = options->seconds * 1000;
	int differing = -1;
	bool ok;

	company->left = options->rounds;
	company->running = company->count;
	company->think_ms = ms * 3 / 4 * company->count / (options->rounds + 1);
	faults_begin(&faults, company->site, scenario_named("mixed"), options);
	faults.retry_every_ms = RETRY_EVERY_MS;
	for (int i = 0; i < company->count; i++) {
		parts[i] = (struct part){ company, &company->wishers[i], 0 };
		if (pthread_create(&parts[i].thread, NULL, part_run, &parts[i]))
			abort();
	}
	ok = play_faults(&faults, ms, company_is_done, company, err);
	company->left = 0;
	faults_end(&faults);
	recovery_ms = play_recovery(
	    company->site, options, company_is_done, company, &people_ms);
	for (int i = 0; i < company->count; i++)
		pthread_join(parts[i].thread, NULL);
	if (ok && !chaos_interrupted())
		differing = differences(company->site, err);
	return report(company, differing, recovery_ms, options) && ok;
}

bool converge_run(struct site *site, const struct options *options)
{
	struct company *company = calloc(1, sizeof(*company));
	struct err err = { 0 };
	bool good;

	if (!company)
		abort();
	for (int s = 0; s < site->count; s++)
		proxy_set_log(site->sides[s].proxy, false);
	good = company_begin(company, site, options->seed, options->guests) &&
	    play(company, options, &err);
	if (err.code)
		fprintf(stderr, "chaos: converge: %s\n", err.text);
	for (int i = 0; i < company->count; i++)
		line_close(&company->wishers[i].line);
	free(company);
	return good;
}

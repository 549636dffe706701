#include "tests/chaos/line.h"

#include <sys/socket.h>
#include <sys/time.h>

#include "common/base/clock.h"

enum { ANSWER_S = 8, REGISTER_MS = 60000, CALLS_PER_CONNECTION = 500 };

const char *line_text(const struct json *value, const char *name)
{
	return json_string(json_member(value, name));
}

void line_close(struct line *line)
{
	if (line->open)
		plain_close(&line->http);
	line->open = false;
}

/* The status; 0: no answer. */
int line_call(struct line *line, struct arena *arena, const char *method,
    const char *path, const char *body, struct plain_answer *answer)
{
	struct timeval wait = { .tv_sec = ANSWER_S };

	*answer = (struct plain_answer){ 0 };
	if (line->calls++ % CALLS_PER_CONNECTION == 0)
		line_close(line);
	if (!line->open) {
		line->open = true;
		if (!plain_open(&line->http, line->side->address)) {
			line_close(line);
			return 0;
		}
		setsockopt(line->http.socket, SOL_SOCKET, SO_RCVTIMEO, &wait,
		    sizeof(wait));
	}
	if (plain_call(&line->http, arena, LINE(method, path),
		line->person ? line->person->token : NULL, body, answer))
		return answer->status;
	line_close(line);
	return 0;
}

/* ---- before anything goes wrong ---- */

bool line_insist(struct line *line, struct arena *arena, const char *path,
    const char *body, struct plain_answer *answer)
{
	int64_t until = clock_steady_ms() + REGISTER_MS;

	do {
		int status = line_call(line, arena, "POST", path, body, answer);

		if (status == 200 || status == 201)
			return true;
		pause_ms(200);
	} while (clock_steady_ms() < until && !chaos_interrupted());
	fprintf(stderr, "chaos: POST %s: %d %s\n", path, answer->status,
	    answer->body ? answer->body : "no answer");
	return false;
}

static bool person_register(struct site *site, struct side *side, int place)
{
	struct line line = { .side = side };
	struct chaos_person *person = &side->people[place];
	struct plain_answer answer;
	bool ok;

	person->username =
	    arena_printf(site->arena, "%s_%d", side->name, place);
	ok = line_insist(&line, site->arena, "/api/auth/register",
	    arena_printf(site->arena,
		"{\"username\":\"%s\",\"password\":\"correct-horse\"}",
		person->username),
	    &answer);
	person->token = line_text(answer.json, "token");
	person->id = line_text(json_member(answer.json, "user"), "id");
	line_close(&line);
	return ok && person->token && person->id;
}

static bool peers_make(struct site *site, struct side *side, int other)
{
	struct line line = { .side = side, .person = &side->people[0] };
	struct plain_answer answer;
	bool ok =
	    line_insist(&line, site->arena, "/api/federation/peer/initiate",
		arena_printf(site->arena, "{\"remoteOrigin\":\"%s\"}",
		    proxy_origin(site->sides[other].proxy)),
		&answer);

	line_close(&line);
	return ok;
}

bool line_people(struct site *site)
{
	bool ok = true;

	for (int s = 0; ok && s < site->count; s++)
		for (int p = 0; ok && p < PEOPLE; p++)
			ok = person_register(site, &site->sides[s], p);
	for (int s = 0; ok && s < site->count; s++)
		for (int t = s + 1; ok && t < site->count; t++)
			ok = peers_make(site, &site->sides[s], t);
	return ok;
}

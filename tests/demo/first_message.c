/*
 * first-message -- what ./dev run shows.
 *
 *   first-message HOST:PORT USER HOST:PORT USER PASSWORD [ROUNDS]
 *   first-message --peer-all USER PASSWORD HOST:PORT...
 *
 * The first registers a person on each of two nodes, makes the nodes peers
 * and sends a message each way; it prints every step with its time and ends
 * with 0 only if both arrived. ROUNDS more each way give the latency from
 * POST on one node to readable on the other, as figures. The second makes all
 * the nodes peers of each other.
 */
#include <time.h>

#include "common/base/clock.h"
#include "tests/lib/plain_http.h"

enum { ARRIVAL_MS = 20000, ROUNDS_MAX = 100000 };

struct person {
	struct plain_http http;
	const char *name;
	const char *id;
	const char *token;
	const char *channel;
};

static const char *text_at(const struct json *value, const char *name)
{
	return json_string(json_member(value, name));
}

static bool step(const char *what, int64_t since_us)
{
	printf("%-46s %8.1f ms\n", what,
	    (double)(clock_steady_us() - since_us) / 1000);
	fflush(stdout);
	return true;
}

static bool wrong(const char *what, const struct plain_answer *answer)
{
	fprintf(stderr, "first-message: %s: %d %s\n", what, answer->status,
	    answer->body ? answer->body : "no answer");
	return false;
}

/* Registers, or logs in who is registered already. */
static bool enter(
    struct person *person, struct arena *arena, const char *password)
{
	const char *body =
	    arena_printf(arena, "{\"username\":\"%s\",\"password\":\"%s\"}",
		person->name, password);
	struct plain_answer answer = { 0 };

	if (!plain_call(&person->http, arena,
		LINE("POST", "/api/auth/register"), NULL, body, &answer))
		return wrong("register", &answer);
	if (answer.status == 409 &&
	    !plain_call(&person->http, arena, LINE("POST", "/api/auth/login"),
		NULL, body, &answer))
		return wrong("login", &answer);
	if (answer.status != 200 && answer.status != 201)
		return wrong("register", &answer);
	person->token = text_at(answer.json, "token");
	person->id = text_at(json_member(answer.json, "user"), "id");
	return true;
}

static bool peer_with(
    struct person *admin, struct arena *arena, const char *host)
{
	struct plain_answer answer = { 0 };

	if (!plain_call(&admin->http, arena,
		LINE("POST", "/api/federation/peer/initiate"), admin->token,
		arena_printf(arena, "{\"remoteOrigin\":\"http://%s\"}", host),
		&answer) ||
	    answer.status != 200)
		return wrong("peer", &answer);
	return true;
}

static bool open_dm(
    struct person *from, struct arena *arena, const struct person *to)
{
	size_t host = strcspn(to->http.host, ":");
	struct plain_answer answer = { 0 };

	if (!plain_call(&from->http, arena, LINE("POST", "/api/dm"),
		from->token,
		arena_printf(arena,
		    "{\"homeUserId\":\"%s\",\"homeInstance\":\"%.*s\"}", to->id,
		    (int)host, to->http.host),
		&answer) ||
	    answer.status > 201)
		return wrong("open", &answer);
	from->channel = text_at(answer.json, "id");
	return true;
}

/* The channel of somebody whom the other one has written to. */
static bool find_channel(struct person *person, struct arena *arena)
{
	struct plain_answer answer = { 0 };

	if (person->channel)
		return true;
	if (!plain_call(&person->http, arena, LINE("GET", "/api/dm"),
		person->token, NULL, &answer))
		return wrong("list", &answer);
	person->channel = text_at(json_element(answer.json, 0), "id");
	return true;
}

static bool newest_is(
    struct person *person, struct arena *arena, const char *text)
{
	struct plain_answer answer = { 0 };
	const char *path;
	const char *content;

	if (!find_channel(person, arena) || !person->channel)
		return false;
	path =
	    arena_printf(arena, "/api/dm/%s/messages?limit=1", person->channel);
	if (!plain_call(&person->http, arena, LINE("GET", path), person->token,
		NULL, &answer))
		return false;
	content = text_at(json_element(answer.json, 0), "content");
	return content && !strcmp(content, text);
}

/* us from just before the POST to readable on the other node; -1: never. */
static int64_t send_message(struct person *from, struct person *to,
    struct arena *arena, const char *text)
{
	struct arena *look = arena_new();
	struct timespec pause = { .tv_nsec = 1000000 };
	int64_t start = clock_steady_us();
	int64_t took = -1;
	struct plain_answer answer = { 0 };

	if (!plain_call(&from->http, arena,
		LINE("POST",
		    arena_printf(arena, "/api/dm/%s/messages", from->channel)),
		from->token, arena_printf(arena, "{\"content\":\"%s\"}", text),
		&answer) ||
	    answer.status != 201)
		wrong("send", &answer);
	while (answer.status == 201 && took < 0 &&
	    clock_steady_us() - start < ARRIVAL_MS * 1000) {
		if (newest_is(to, to->channel ? look : arena, text))
			took = clock_steady_us() - start;
		else
			nanosleep(&pause, NULL);
		arena_reset(look);
	}
	arena_free(&look);
	return took;
}

static int by_size(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a;
	int64_t right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static bool measure(struct person *a, struct person *b, int rounds)
{
	struct arena *arena = arena_new();
	int64_t *took = calloc((size_t)rounds, sizeof(*took));
	bool all = took != NULL;

	for (int i = 0; all && i < rounds; i++) {
		took[i] = send_message(i % 2 ? b : a, i % 2 ? a : b, arena,
		    arena_printf(arena, "round %d", i));
		all = took[i] >= 0;
		arena_reset(arena);
	}
	if (all) {
		qsort(took, (size_t)rounds, sizeof(*took), by_size);
		printf("figure=message_latency_p50 value=%.2f unit=ms\n",
		    (double)took[rounds / 2] / 1000);
		printf("figure=message_latency_p99 value=%.2f unit=ms\n",
		    (double)took[rounds * 99 / 100] / 1000);
	}
	free(took);
	arena_free(&arena);
	return all;
}

static bool exchange(struct person *a, struct person *b, struct arena *arena)
{
	int64_t took = send_message(a, b, arena, "hello from the first node");
	int64_t back = -1;

	if (took >= 0) {
		printf("%-46s %8.1f ms\n", "a message arrives",
		    (double)took / 1000);
		back = send_message(b, a, arena, "hello back");
	}
	if (back >= 0)
		printf("%-46s %8.1f ms\n", "the answer arrives",
		    (double)back / 1000);
	return back >= 0;
}

static int show(char **argv, struct arena *arena, int rounds)
{
	struct person a = { .name = argv[2] };
	struct person b = { .name = argv[4] };
	int64_t now = clock_steady_us();
	bool ok = plain_open(&a.http, argv[1]) &&
	    plain_open(&b.http, argv[3]) && enter(&a, arena, argv[5]) &&
	    step("first person registered", now) && (now = clock_steady_us()) &&
	    enter(&b, arena, argv[5]) &&
	    step("second person registered", now) &&
	    (now = clock_steady_us()) && peer_with(&a, arena, argv[3]) &&
	    step("nodes are peers", now) && (now = clock_steady_us()) &&
	    open_dm(&a, arena, &b) && step("conversation opened", now) &&
	    exchange(&a, &b, arena) && (!rounds || measure(&a, &b, rounds));

	plain_close(&a.http);
	plain_close(&b.http);
	return ok ? 0 : 1;
}

/* An administrator on the node at host, peered with the hosts after it. */
static bool join(struct arena *arena, const char *const who[2],
    const char *host, char **others)
{
	struct person admin = { .name = who[0] };
	bool ok = plain_open(&admin.http, host) && enter(&admin, arena, who[1]);

	for (; ok && *others; others++)
		ok = peer_with(&admin, arena, *others);
	plain_close(&admin.http);
	return ok;
}

int main(int argc, char **argv)
{
	struct arena *arena = arena_new();
	int status = 2;

	if (argc >= 5 && !strcmp(argv[1], "--peer-all")) {
		const char *who[2] = { argv[2], argv[3] };

		status = 0;
		for (int i = argc - 1; !status && i >= 4; i--)
			status = !join(arena, who, argv[i], argv + i + 1);
	} else if (argc == 6 || argc == 7) {
		long rounds = argc == 7 ? strtol(argv[6], NULL, 10) : 0;

		if (rounds >= 0 && rounds <= ROUNDS_MAX)
			status = show(argv, arena, (int)rounds);
	}
	if (status == 2)
		fprintf(stderr, "usage: see tests/demo/first_message.c\n");
	arena_free(&arena);
	return status;
}

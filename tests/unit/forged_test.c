/* Attribution comes before anything else, whatever the type. */
#include <criterion/criterion.h>

#include "common/federation/relay.h"
#include "tests/lib/test_forged.h"

static struct arena *arena;
static struct node node;
static struct peer luna = { .origin = "https://luna.test",
	.host = "luna.test" };

static void begin(void)
{
	arena = arena_new();
	cr_assert(origin_parse(arena, "https://nova.test", &node.origin));
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(forged, .init = begin, .fini = end);

/* What is known of it before the database was ever asked. */
static const char *read_alone(const char *event)
{
	const char *body = arena_printf(arena,
	    "{\"version\":1,\"sourceInstance\":\"https://luna.test\","
	    "\"events\":[%s]}",
	    event);
	struct relay_batch *batch;
	struct err err = { 0 };
	struct buf answer;

	cr_assert(relay_parse(arena, (struct bytes){ body, strlen(body) },
		      &node, &luna, &batch, &err),
	    "%s", err.text);
	buf_init(&answer, arena, 1 << 16);
	relay_answer(batch, &answer);
	return answer.data;
}

static const char *forge(const struct event_type *type, const char *who)
{
	const struct forgery forgery = {
		.who = who,
		/* Either side of a friendship may act: both are strangers. */
		.friend = arena_printf(arena, "\"homeUserId\":\"2%s",
		    who + strlen("\"homeUserId\":\"")),
		.whom = "\"homeUserId\":\"9\",\"homeInstance\":\"nova.test\"",
		.about = "385899689695301632",
		.about_instance = "https://nova.test",
		.place = "c51b6cfa-15c6-4f7c-ae89-aff88db828e0",
	};

	return forged_event(arena, type, &forgery);
}

Test(forged, every_type_refuses_a_stranger_before_it_looks_anything_up)
{
	static const char *const hosts[] = { "evil.test", "https://evil.test",
		"luna.test.evil.test", "evil-luna.test", "luna.test:8443",
		"https://luna.test@evil.test", "nova.test:1", "",
		"luna.test#" };
	const struct event_type *type;

	for (size_t i = 0; (type = event_type_at(i)); i++)
		for (size_t j = 0; j < COUNT(hosts); j++) {
			const char *answer = read_alone(forge(type,
			    arena_printf(arena,
				"\"homeUserId\":\"1\",\"homeInstance\":\"%s\"",
				hosts[j])));

			if (forged_names_nobody(type))
				continue;
			cr_expect(strstr(answer, "\"attribution_mismatch\""),
			    "%s of %s: %s", type->name, hosts[j], answer);
		}
}

Test(forged, every_type_takes_the_form_from_whom_it_may)
{
	const struct event_type *type;

	for (size_t i = 0; (type = event_type_at(i)); i++) {
		const char *answer = read_alone(forge(type,
		    "\"homeUserId\":\"1\",\"homeInstance\":\"luna.test\""));

		cr_expect(strstr(answer, "\"reason\":null"),
		    "%s is not refused for its form: %s", type->name, answer);
	}
}

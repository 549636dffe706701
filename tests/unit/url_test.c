#include <criterion/criterion.h>

#include "common/net/url.h"

static struct arena *arena;

static void begin(void)
{
	arena = arena_new();
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(url, .init = begin, .fini = end);

struct origin_case {
	const char *url;
	const char *text; /* NULL: refused */
};

/* clang-format off */
static const struct origin_case origin_cases[] = {
	{ "https://nova.example",                "https://nova.example" },
	{ "https://nova.example/",               "https://nova.example" },
	{ "HTTPS://NOVA.Example",                "https://nova.example" },
	{ "https://nova.example:443",            "https://nova.example" },
	{ "https://nova.example:0443",           "https://nova.example" },
	{ "https://nova.example.",               "https://nova.example" },
	{ "https://nova.example.:443/a?b#c",     "https://nova.example" },
	{ "https://nova.example?x",              "https://nova.example" },
	{ "https://nova.example#@evil.test",     "https://nova.example" },
	{ "https://nova.example/@evil.test",     "https://nova.example" },
	{ "https://nova.example:8443/a",         "https://nova.example:8443" },
	{ "https://nova.example:80",             "https://nova.example:80" },
	/* one peer, four spellings */
	{ "https://b\xc3\xbc" "cher.example",    "https://xn--bcher-kva.example" },
	{ "https://B\xc3\x9c" "CHER.Example.",   "https://xn--bcher-kva.example" },
	{ "https://bu\xcc\x88" "cher.example",   "https://xn--bcher-kva.example" },
	{ "https://XN--BCHER-KVA.example",       "https://xn--bcher-kva.example" },
	{ "https://fa\xc3\x9f.example",          "https://xn--fa-hia.example" },
	/* full width letters, ideographic full stop */
	{ "https://\xef\xbd\x8eova\xe3\x80\x82test", "https://nova.test" },
	{ "https://a--b.ab--c.example",          "https://a--b.ab--c.example" },
	{ "https://192.0.2.7",                   "https://192.0.2.7" },
	{ "https://192.0.2.7.:8443",             "https://192.0.2.7:8443" },
	{ "https://[2001:DB8:0:0::1]:443",       "https://[2001:db8::1]" },
	{ "https://localhost",                   "https://localhost" },
	{ "http://localhost:80",                 "http://localhost" },
	{ "http://nova.localhost:8101/x",        "http://nova.localhost:8101" },
	{ "http://127.0.0.1:8101",               "http://127.0.0.1:8101" },
	{ "http://[::1]:8101",                   "http://[::1]:8101" },
	/* plain http is for this machine */
	{ "http://nova.example",                 NULL },
	{ "http://192.168.0.1",                  NULL },
	{ "http://localhost.example",            NULL },
	{ "http://evillocalhost",                NULL },
	/* not an origin */
	{ "",                                    NULL },
	{ "nova.example",                        NULL },
	{ "//nova.example",                      NULL },
	{ "https:",                              NULL },
	{ "https://",                            NULL },
	{ "https:///nova.example",               NULL },
	{ "https:/nova.example",                 NULL },
	{ "https:nova.example",                  NULL },
	{ "https:/[::1]/://nova.example",        NULL },
	{ "ftp://nova.example",                  NULL },
	{ "file:///etc/passwd",                  NULL },
	{ "javascript://nova.example",           NULL },
	{ "wss://nova.example",                  NULL },
	/* user info */
	{ "https://user@nova.example",           NULL },
	{ "https://user:pw@nova.example",        NULL },
	{ "https://@nova.example",               NULL },
	{ "https://nova.example@evil.test",      NULL },
	{ "https://nova.example:443@evil.test",  NULL },
	/* characters that parsers disagree about */
	{ "https://nova.example\\@evil.test",    NULL },
	{ "https://nova.example\\evil",          NULL },
	{ "https://nova example",                NULL },
	{ " https://nova.example",               NULL },
	{ "https://nova.example ",               NULL },
	{ "https://nova.example\n",              NULL },
	{ "https://nova\t.example",              NULL },
	{ "https://nova.example/\x7f",           NULL },
	{ "https://nova.example%00.evil.test",   NULL },
	{ "https://nova%2eexample",              NULL },
	{ "https://%6eova.example",              NULL },
	{ "https://nova.example;evil",           NULL },
	{ "https://no_va.example",               NULL },
	{ "https://nova,evil.example",           NULL },
	{ "https://*.example",                   NULL },
	/* Unicode that turns into something else */
	{ "https://nova\xef\xbc\x8f.evil.test",  NULL }, /* slash */
	{ "https://nova\xef\xbc\xa0" "evil.test", NULL }, /* at */
	{ "https://nova\xef\xbc\x85" "41.test",  NULL }, /* percent */
	{ "https://\xe2\x84\x80.example",        NULL }, /* a/c */
	{ "https://b\xc3\xbc_.example",          NULL },
	{ "https://\xff.example",                NULL },
	{ "https://xn--www-mt7a.example",        NULL },
	/* labels */
	{ "https://.",                           NULL },
	{ "https://.nova.example",               NULL },
	{ "https://nova..example",               NULL },
	{ "https://nova.example..",              NULL },
	{ "https://-nova.example",               NULL },
	{ "https://nova-.example",               NULL },
	{ "https://a123456789012345678901234567890123456789012345678901234567890123"
	  ".example",                            NULL },
	/* IPv4 in other spellings */
	{ "https://2130706433",                  NULL },
	{ "https://0x7f.1",                      NULL },
	{ "https://0x7f000001",                  NULL },
	{ "https://0177.0.0.1",                  NULL },
	{ "https://127.1",                       NULL },
	{ "https://1.2.3",                       NULL },
	{ "https://127.0.0.256",                 NULL },
	{ "https://nova.7",                      NULL },
	{ "https://nova.0x7f",                   NULL },
	{ "https://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.1", NULL },
	{ "https://[::ffff:127.0.0.1]",          NULL },
	{ "https://[::ffff:7f00:1]",             NULL },
	{ "https://[::127.0.0.1]",               NULL },
	{ "https://[fe80::1%25eth0]",            NULL },
	{ "https://[::1",                        NULL },
	{ "https://[nova.example]",              NULL },
	{ "https://[]",                          NULL },
	/* ports */
	{ "https://nova.example:",               NULL },
	{ "https://nova.example:0",              NULL },
	{ "https://nova.example:65536",          NULL },
	{ "https://nova.example:x",              NULL },
	{ "https://nova.example:+443",           NULL },
	{ "https://nova.example:-1",             NULL },
	{ "https://nova.example:8443:1",         NULL },
};
/* clang-format on */

Test(url, an_origin_has_one_spelling)
{
	for (size_t i = 0; i < COUNT(origin_cases); i++) {
		const struct origin_case *c = &origin_cases[i];
		struct origin origin = { .text = "untouched" };
		bool ok = origin_parse(arena, c->url, &origin);

		cr_expect_eq(ok, c->text != NULL, "<%s> gave %s", c->url,
		    ok ? origin.text : "nothing");
		if (ok && c->text)
			cr_expect_str_eq(origin.text, c->text, "<%s>", c->url);
		if (!ok)
			cr_expect_str_eq(origin.text, "untouched");
	}
}

Test(url, a_normal_origin_stays_as_it_is)
{
	for (size_t i = 0; i < COUNT(origin_cases); i++) {
		const char *text = origin_cases[i].text;
		struct origin origin;

		if (!text)
			continue;
		cr_assert(origin_parse(arena, text, &origin), "%s", text);
		cr_expect_str_eq(origin.text, text);
	}
}

Test(url, an_origins_parts_are_named)
{
	struct origin origin;

	cr_assert(origin_parse(arena, "https://Nova.example", &origin));
	cr_expect_str_eq(origin.host, "nova.example");
	cr_expect_eq(origin.port, 443);
	cr_expect_not(origin.plain);
	cr_assert(origin_parse(arena, "http://localhost/x", &origin));
	cr_expect_eq(origin.port, 80);
	cr_expect(origin.plain);
	cr_assert(origin_parse(arena, "https://[::1]:8443", &origin));
	cr_expect_str_eq(origin.host, "[::1]");
	cr_expect_eq(origin.port, 8443);
}

Test(url, an_endless_one_is_refused)
{
	char *url = arena_alloc(arena, 1 << 20);
	struct origin origin;

	memset(url, 'a', (1 << 20) - 1);
	memcpy(url, "https://nova.example/", 21);
	cr_expect_not(origin_parse(arena, url, &origin));
	url[8000] = '\0';
	cr_expect(origin_parse(arena, url, &origin));
}

struct instance_case {
	const char *text;
	const char *host; /* NULL: not an instance */
	int port;
};

/* clang-format off */
static const struct instance_case instance_cases[] = {
	{ "nova.test",                     "nova.test", 0 },
	{ "NOVA.test.",                    "nova.test", 0 },
	{ "nova.test:8443",                "nova.test", 8443 },
	{ "nova.test:443",                 "nova.test", 0 },
	{ "https://nova.test",             "nova.test", 0 },
	{ "https://nova.test/",            "nova.test", 0 },
	{ "https://nova.test:443",         "nova.test", 0 },
	{ "https://nova.test:8443",        "nova.test", 8443 },
	{ "HTTPS://B\xc3\x9c" "CHER.example/", "xn--bcher-kva.example", 0 },
	{ "b\xc3\xbc" "cher.example",      "xn--bcher-kva.example", 0 },
	{ "http://nova.localhost:8101",    "nova.localhost", 8101 },
	{ "http://localhost:80",           "localhost", 0 },
	{ "nova.localhost:8101",           "nova.localhost", 8101 },
	{ "[::1]:8101",                    "[::1]", 8101 },
	{ "evil-nova.example",             "evil-nova.example", 0 },
	{ "nova.example.evil.test",        "nova.example.evil.test", 0 },
	{ "",                              NULL, 0 },
	{ " ",                             NULL, 0 },
	{ "a b",                           NULL, 0 },
	{ "evil@x",                        NULL, 0 },
	{ "nova.example#",                 NULL, 0 },
	{ "nova.example?",                 NULL, 0 },
	{ "nova.example/",                 NULL, 0 },
	{ "nova.example/a",                NULL, 0 },
	{ "https://nova.example/a",        NULL, 0 },
	{ "https://nova.example/?",        NULL, 0 },
	{ "https://nova.example#",         NULL, 0 },
	{ "https://nova.example@evil.test", NULL, 0 },
	{ "http://nova.example",           NULL, 0 },
	{ "nova.example/://",              NULL, 0 },
	{ "//nova.example",                NULL, 0 },
	{ "nova.example:",                 NULL, 0 },
	{ "nova.example:0",                NULL, 0 },
	{ "nova.example:8443x",            NULL, 0 },
	{ ":8443",                         NULL, 0 },
	{ "::1",                           NULL, 0 },
	{ "2130706433",                    NULL, 0 },
	{ ".",                             NULL, 0 },
	{ "nova.example\n",                NULL, 0 },
};
/* clang-format on */

Test(url, an_instance_is_a_host_or_an_origin)
{
	for (size_t i = 0; i < COUNT(instance_cases); i++) {
		const struct instance_case *c = &instance_cases[i];
		int port = -7;
		const char *host = instance_host(arena, c->text, &port);

		cr_expect_eq(host != NULL, c->host != NULL, "<%s> gave %s",
		    c->text, host ? host : "nothing");
		if (host && c->host)
			cr_expect_str_eq(host, c->host, "<%s>", c->text);
		cr_expect_eq(
		    port, c->host ? c->port : -7, "<%s>: %d", c->text, port);
	}
}

Test(url, only_the_very_same_host_counts)
{
	static const struct {
		const char *url;
		bool same;
	} cases[] = {
		{ "https://nova.example/f/1", true },
		{ "http://nova.example/f/1", true },
		{ "https://NOVA.example.:8443/f", true },
		{ "https://nova.example", true },
		{ "https://evil-nova.example/f", false },
		{ "https://nova.example.evil.test/f", false },
		{ "https://cdn.nova.example/f", false },
		{ "https://example/f", false },
		{ "https://user:pw@nova.example/f", false },
		{ "https://nova.example@evil.test/f", false },
		{ "https://evil.test/nova.example", false },
		{ "https://evil.test#nova.example", false },
		{ "https://nova.example\\@evil.test/f", false },
		{ "https://nova.example%00.evil.test/", false },
		{ "ftp://nova.example/f", false },
		{ "//nova.example/f", false },
		{ "/f/1", false },
		{ "", false },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(url_has_host(arena, cases[i].url, "nova.example"),
		    cases[i].same, "<%s>", cases[i].url);
}

Test(url, is_split_into_origin_and_path)
{
	static const struct {
		const char *url, *path;
	} cases[] = {
		{ "https://nova.example", "/" },
		{ "https://nova.example/", "/" },
		{ "https://nova.example?x=1", "/?x=1" },
		{ "https://nova.example#f", "/" },
		{ "http://nova.example/a/../b?c=%20&d#f", "/a/../b?c=%20&d" },
	};
	struct origin origin;
	const char *path;

	for (size_t i = 0; i < COUNT(cases); i++) {
		cr_assert(url_parse(arena, cases[i].url, &origin, &path));
		cr_expect_str_eq(origin.host, "nova.example");
		cr_expect_str_eq(path, cases[i].path, "<%s>", cases[i].url);
	}
	cr_expect(origin.plain);
}

Test(url, local_hosts_are_this_machine_by_name)
{
	static const char *const local[] = { "localhost", "LOCALHOST",
		"a.localhost", "a.b.localhost", "127.0.0.1", "127.255.0.9",
		"[::1]", "::1" };
	static const char *const other[] = { "", ".localhost", "localhosts",
		"evillocalhost", "localhost.evil", "128.0.0.1", "127.1",
		"127.0.0.1.evil", "0.0.0.0", "[::]", "nova.example" };

	for (size_t i = 0; i < COUNT(local); i++)
		cr_expect(host_is_local(local[i]), "%s", local[i]);
	for (size_t i = 0; i < COUNT(other); i++)
		cr_expect_not(host_is_local(other[i]), "%s", other[i]);
}

Test(url, a_location_is_read_as_the_answer_to_its_url)
{
	static const struct {
		const char *location;
		const char *want; /* NULL: none */
	} cases[] = {
		{ "https://other.example/x", "https://other.example/x" },
		{ "http://nova.example/x", "http://nova.example/x" },
		{ "/y?z=1#f", "https://nova.example:8443/y?z=1" },
		{ "y", "https://nova.example:8443/a/y" },
		{ "//other.example:443", "https://other.example/" },
		{ "?q", "https://nova.example:8443/a/b?q" },
		{ "HTTPS://OTHER.example./", "https://other.example/" },
		{ "ftp://other.example/", NULL },
		{ "file:///etc/passwd", NULL },
		{ "https://u:p@other.example/", NULL },
		{ "https://", NULL },
		{ "https://0x7f.1/", NULL },
		{ "javascript:alert(1)", NULL },
		{ "/a b", "https://nova.example:8443/a%20b" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *got = url_join(arena,
		    "https://nova.example:8443/a/b?c=1", cases[i].location);

		if (cases[i].want)
			cr_expect(got && !strcmp(got, cases[i].want), "%s: %s",
			    cases[i].location, got);
		else
			cr_expect_null(got, "%s: %s", cases[i].location, got);
	}
}

Test(url, strangers_are_met_at_ports_of_web_servers)
{
	static const int open[] = { 80, 443, 1024, 3000, 8080, 8443, 65535 };
	static const int shut[] = { 1, 22, 25, 79, 81, 110, 444, 993, 1023,
		1720, 2049, 5060, 6000, 6665, 6667, 6697, 10080 };

	for (size_t i = 0; i < COUNT(open); i++)
		cr_expect(port_is_web(open[i]), "%d", open[i]);
	for (size_t i = 0; i < COUNT(shut); i++)
		cr_expect_not(port_is_web(shut[i]), "%d", shut[i]);
}

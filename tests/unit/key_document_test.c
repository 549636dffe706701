/* Whose key a foreign document shows: only that of its own server counts. */
#include <criterion/criterion.h>

#include "common/crypto/pkey.h"
#include "common/fediverse/activity.h"
#include "common/fediverse/key_document.h"
#include "common/fediverse/multikey.h"

#define BOB "https://luna.example/users/bob"
#define ED25519 "z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvktH"

static struct arena *arena;
static const char *pem;

static void begin(void)
{
	const char *private_pem;

	arena = arena_new();
	pkey_fresh(arena, &private_pem, &pem);
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(key_document, .init = begin, .fini = end);

/* PEM in the text stands for the key. */
static struct bytes filled(const char *text)
{
	struct buf buf;

	buf_init(&buf, arena, 65536);
	while (*text) {
		if (strncmp(text, "PEM", 3) == 0) {
			json_quote(&buf, pem);
			text += 3;
		} else {
			buf_char(&buf, *text++);
		}
	}
	return buf_bytes(&buf);
}

static const struct {
	const char *what;
	const char *key_id;
	const char *text;
	const char *inbox; /* NULL with owner: none */
	bool fits;
} documents[] = {
	{ "an actor", BOB "#main-key",
	    "{\"id\":\"" BOB "\",\"inbox\":\"" BOB "/inbox\","
	    "\"publicKey\":{\"id\":\"" BOB "#main-key\",\"owner\":\"" BOB
	    "\",\"publicKeyPem\":PEM}}",
	    BOB "/inbox", true },
	{ "one of a list", BOB "#main-key",
	    "{\"id\":\"" BOB "\",\"publicKey\":[{\"id\":\"" BOB
	    "#other\"},{\"id\":\"" BOB "#main-key\",\"owner\":\"" BOB
	    "\",\"publicKeyPem\":PEM}]}",
	    NULL, true },
	{ "a stub at the key's address", BOB "/main-key",
	    "{\"id\":\"" BOB "\",\"publicKey\":{\"id\":\"" BOB
	    "/main-key\",\"owner\":\"" BOB "\",\"publicKeyPem\":PEM}}",
	    NULL, true },
	{ "the key alone", BOB "/key",
	    "{\"id\":\"" BOB "/key\",\"owner\":\"" BOB
	    "\",\"publicKeyPem\":PEM}",
	    NULL, true },
	{ "a multikey", BOB "#ed",
	    "{\"id\":\"" BOB "\",\"assertionMethod\":[{\"id\":\"" BOB
	    "#ed\",\"type\":\"Multikey\",\"controller\":\"" BOB
	    "\",\"publicKeyMultibase\":\"" ED25519 "\"}]}",
	    NULL, true },
	{ "an inbox of elsewhere is none", BOB "#main-key",
	    "{\"id\":\"" BOB "\",\"inbox\":\"https://evil.example/inbox\","
	    "\"publicKey\":{\"id\":\"" BOB "#main-key\",\"owner\":\"" BOB
	    "\",\"publicKeyPem\":PEM}}",
	    NULL, true },
	{ "another key", BOB "#main-key",
	    "{\"id\":\"" BOB "\",\"publicKey\":{\"id\":\"" BOB
	    "#other\",\"owner\":\"" BOB "\",\"publicKeyPem\":PEM}}",
	    NULL, false },
	{ "an owner of elsewhere", BOB "#main-key",
	    "{\"id\":\"https://evil.example/b\",\"publicKey\":{"
	    "\"id\":\"" BOB "#main-key\",\"owner\":\"https://evil.example/b\","
	    "\"publicKeyPem\":PEM}}",
	    NULL, false },
	{ "a neighbour's document", BOB "#main-key",
	    "{\"id\":\"https://luna.example/users/eve\","
	    "\"publicKey\":{\"id\":\"" BOB "#main-key\",\"owner\":\"" BOB
	    "\",\"publicKeyPem\":PEM}}",
	    NULL, false },
	{ "no owner", BOB "#main-key",
	    "{\"id\":\"" BOB "\",\"publicKey\":{\"id\":\"" BOB
	    "#main-key\",\"publicKeyPem\":PEM}}",
	    NULL, false },
	{ "no key", BOB "#main-key",
	    "{\"id\":\"" BOB "\",\"publicKey\":{\"id\":\"" BOB
	    "#main-key\",\"owner\":\"" BOB "\",\"publicKeyPem\":\"x\"}}",
	    NULL, false },
	{ "a list", BOB "#main-key", "[]", NULL, false },
	{ "no JSON", BOB "#main-key", "<html>", NULL, false },
};

Test(key_document, shows_the_key_that_was_asked_for_or_nothing)
{
	for (size_t i = 0; i < COUNT(documents); i++) {
		struct key_document document;
		struct err err;
		bool fits = key_document_read(arena, filled(documents[i].text),
		    documents[i].key_id, &document, &err);

		cr_assert_eq(fits, documents[i].fits, "%s", documents[i].what);
		if (!fits)
			continue;
		cr_expect_str_eq(document.owner, BOB);
		cr_expect_eq(!document.inbox, !documents[i].inbox, "%s",
		    documents[i].what);
		if (document.inbox && documents[i].inbox)
			cr_expect_str_eq(document.inbox, documents[i].inbox);
	}
}

/* FEP-844e: of itself, or of what made it. */
Test(key_document, tells_what_its_server_understands)
{
	static const struct {
		const char *says;
		bool takes;
	} cases[] = {
		{ "\"implements\":[{\"href\":\"https://x/\"},"
		  "{\"href\":\"https://datatracker.ietf.org/doc/html/rfc9421\","
		  "\"name\":\"x\"}]",
		    true },
		{ "\"implements\":\"https://datatracker.ietf.org/doc/html/"
		  "rfc9421\"",
		    true },
		{ "\"generator\":{\"implements\":[\"https://"
		  "datatracker.ietf.org/"
		  "doc/html/rfc9421\"]}",
		    true },
		{ "\"generator\":\"https://datatracker.ietf.org/doc/html/"
		  "rfc9421\"",
		    false },
		{ "\"implements\":[7,null,{\"href\":{}}]", false },
		{ "\"generator\":[]", false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *text = arena_printf(arena,
		    "{\"id\":\"" BOB "\",%s,\"publicKey\":{\"id\":\"" BOB
		    "#main-key\",\"owner\":\"" BOB "\",\"publicKeyPem\":PEM}}",
		    cases[i].says);
		struct key_document document;
		struct err err;

		cr_assert(key_document_read(arena, filled(text),
			      BOB "#main-key", &document, &err),
		    "%s", cases[i].says);
		cr_expect_eq(document.takes_rfc9421, cases[i].takes, "%s",
		    cases[i].says);
	}
}

/* Only where its own inbox leads is credible beside its own server. */
Test(key_document, an_inbox_is_its_own_servers_or_where_that_leads)
{
	static const struct {
		const char *inbox;
		const char *led_to;
		bool read;
	} cases[] = {
		{ BOB "/in", NULL, true },
		{ "https://new.example/in", NULL, false },
		{ "https://new.example/in", "https://new.example/x", true },
		{ "https://new.example:444/in", "https://new.example/x",
		    false },
		{ "http://new.example/in", "https://new.example/x", false },
		{ "https://evil.example/in", "https://new.example/x", false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct key_document document;
		struct err err;
		const char *text = arena_printf(arena,
		    "{\"id\":\"" BOB "\",\"inbox\":\"%s\"}", cases[i].inbox);

		cr_expect_eq(actor_inboxes_read(arena,
				 (struct bytes){ text, strlen(text) }, BOB,
				 cases[i].led_to, &document, &err),
		    cases[i].read, "%s", cases[i].inbox);
	}
}

Test(key_document, is_fetched_without_the_fragment)
{
	cr_expect_str_eq(key_document_url(arena, BOB "#main-key"), BOB);
	cr_expect_str_eq(
	    key_document_url(arena, BOB "/main-key"), BOB "/main-key");
}

Test(key_document, multikeys_are_read_or_refused)
{
	static const char *const bad[] = { "", "z",
		"6MkpTHR8VNsBxYAAWHut2Gead"
		"d9jSwuBV8xRoAnwWsdvktH",
		"z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvkt",
		"z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvktHH",
		"z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvkt0",
		"z4MXj1wBzi9jUstyPMS4jQqB6KdJaiatPkAtVtGc6bQEQEEsKTic4G7Rou3iB"
		"f9vPmT5dbkm9qsZsuVNjq8HCuW1w24nhBFGkRE4cd2Uf2tfrB3N7h4mnyPp1B"
		"F3ZttHTYv3DLUPi1zMdkULiow3M1GfXkoC6DoxDUm1jmN6GBj22SjVsr6dxez"
		"RVQc7aj9TxE7JLbMH1wh5X3kA58H3DFW8rnYMakFGbca5CB2Jf6CnGQZmL7o5"
		"uJAdTwXfy2iiiyPxXEGerMhHwhjTA1mKYobyk2CpeEcmvynADfNZ5MBvcCS7m"
		"3XkFCMNUYBS9NQ3fze6vMSUPsNa6GVYmKx2x6JrdEjCk3qRMMmyjnjCMfR4pX"
		"br" };
	struct pkey *key;
	struct err err;

	cr_assert(pkey_public(multikey_pem(arena, ED25519), &key, &err), "%s",
	    err.text);
	cr_expect_eq(pkey_type(key), PKEY_ED25519);
	pkey_free(&key);
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_null(multikey_pem(arena, bad[i]), "%s", bad[i]);
}

Test(key_document, an_activity_is_its_actors_own)
{
	static const struct {
		const char *text;
		enum err_code code;
		const char *object;
	} rows[] = {
		{ "{\"id\":\"https://luna.example/1\",\"type\":\"Like\","
		  "\"actor\":\"" BOB "\",\"object\":\"https://x.example/1\"}",
		    ERR_NONE, "https://x.example/1" },
		{ "{\"id\":\"https://LUNA.example:443/1\",\"type\":\"Like\","
		  "\"actor\":{\"id\":\"" BOB
		  "\"},\"object\":{\"id\":\"https://x.example/1\"}}",
		    ERR_NONE, "https://x.example/1" },
		{ "{\"id\":\"https://luna.example/1\",\"type\":\"Like\","
		  "\"actor\":[\"" BOB "\"]}",
		    ERR_NONE, NULL },
		{ "{\"id\":\"https://luna.example/1\",\"type\":\"Like\","
		  "\"actor\":[\"" BOB "\",\"" BOB "\"]}",
		    ERR_INVALID, NULL },
		{ "{\"id\":\"https://luna.example:8443/1\",\"type\":\"Like\","
		  "\"actor\":\"" BOB "\"}",
		    ERR_UNAUTHORIZED, NULL },
		{ "{\"id\":\"https://luna.example.evil.example/1\","
		  "\"type\":\"Like\",\"actor\":\"" BOB "\"}",
		    ERR_UNAUTHORIZED, NULL },
		{ "{\"id\":\"http://luna.example/1\",\"type\":\"Like\","
		  "\"actor\":\"" BOB "\"}",
		    ERR_INVALID, NULL },
		{ "{\"id\":\"https://luna.example/1\",\"id\":\"x\","
		  "\"type\":\"Like\",\"actor\":\"" BOB "\"}",
		    ERR_INVALID, NULL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct activity activity;
		struct err err = { .code = ERR_NONE };
		bool fits =
		    activity_read(arena, filled(rows[i].text), &activity, &err);

		cr_expect_eq(err.code, rows[i].code, "%s", rows[i].text);
		cr_assert_eq(fits, rows[i].code == ERR_NONE);
		if (!fits)
			continue;
		cr_expect_str_eq(activity.actor, BOB);
		cr_expect_str_eq(activity.origin, "https://luna.example");
		cr_expect_eq(!activity.object, !rows[i].object);
	}
}

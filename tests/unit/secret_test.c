#include <criterion/criterion.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/secret.h"

static char dir[] = "/tmp/postrider-secret-XXXXXX";
static struct arena *arena;
static struct err err;

static void begin(void)
{
	cr_assert_not_null(mkdtemp(dir));
	unsetenv("CREDENTIALS_DIRECTORY");
	arena = arena_new();
}

static void end(void)
{
	static const char *const names[] = { "key", "other", "node_key" };

	for (size_t i = 0; i < COUNT(names); i++)
		unlink(arena_printf(arena, "%s/%s", dir, names[i]));
	cr_expect_eq(rmdir(dir), 0, "nothing is left behind");
	arena_free(&arena);
}

static const char *path(const char *name)
{
	return arena_printf(arena, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	FILE *file = fopen(path(name), "w");

	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
	cr_assert_eq(chmod(path(name), mode), 0);
}

static struct node_key *fresh_key(const char *name)
{
	struct node_key *key = NULL;

	cr_assert(node_key_create(path(name), &err), "%s", err.text);
	cr_assert(node_key_load(path(name), &key, &err), "%s", err.text);
	return key;
}

TestSuite(secret, .init = begin, .fini = end);

Test(secret, a_sealed_text_opens_again)
{
	struct node_key *key = fresh_key("key"), *again = NULL;
	struct bytes box =
	    secret_seal(arena, key, "peer:42", "s3cret \xc3\xa9");
	struct bytes empty = secret_seal(arena, key, "peer:42", "");

	cr_assert(node_key_load(path("key"), &again, &err));
	cr_expect_str_eq(
	    secret_open(arena, again, "peer:42", box), "s3cret \xc3\xa9");
	cr_expect_str_eq(secret_open(arena, again, "peer:42", empty), "");
	node_key_free(&key);
	cr_expect_null(key);
	node_key_free(&key);
	node_key_free(&again);
}

Test(secret, a_box_hides_its_text_and_is_never_made_twice)
{
	struct node_key *key = fresh_key("key");
	struct bytes a = secret_seal(arena, key, "peer:42", "hush-hush");
	struct bytes b = secret_seal(arena, key, "peer:42", "hush-hush");

	cr_expect_null(memmem(a.data, a.len, "hush", 4));
	cr_expect_eq(a.len, b.len);
	cr_expect_neq(memcmp(a.data, b.data, a.len), 0);
	node_key_free(&key);
}

Test(secret, moved_foreign_and_altered_boxes_do_not_open)
{
	struct node_key *key = fresh_key("key"), *other = fresh_key("other");
	struct bytes box = secret_seal(arena, key, "peer:42", "s3cret");
	unsigned char *bytes = arena_alloc(arena, box.len);

	cr_expect_null(secret_open(arena, key, "peer:43", box));
	cr_expect_null(secret_open(arena, key, "", box));
	cr_expect_null(secret_open(arena, other, "peer:42", box));
	for (size_t i = 0; i < box.len; i++) {
		memcpy(bytes, box.data, box.len);
		bytes[i] ^= 1;
		cr_expect_null(secret_open(arena, key, "peer:42",
				   (struct bytes){ bytes, box.len }),
		    "byte %zu", i);
	}
	for (size_t len = 0; len < box.len; len++)
		cr_expect_null(secret_open(arena, key, "peer:42",
				   (struct bytes){ box.data, len }),
		    "length %zu", len);
	node_key_free(&key);
	node_key_free(&other);
}

Test(secret, an_existing_key_file_is_left_alone)
{
	struct node_key *key = fresh_key("key"), *again;
	struct bytes box = secret_seal(arena, key, "c", "text");
	struct stat st;

	again = fresh_key("key");
	cr_expect_str_eq(secret_open(arena, again, "c", box), "text");
	cr_assert_eq(stat(path("key"), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	node_key_free(&key);
	node_key_free(&again);
}

#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

Test(secret, only_64_hex_digits_are_a_key)
{
	static const struct {
		const char *text;
		bool ok;
	} cases[] = {
		{ HEX64, true },
		{ HEX64 "\n", true },
		{ HEX64 "\r\n", true },
		{ "", false },
		{ "\n", false },
		{ HEX64 "00", false },
		{ HEX64 "\n" HEX64, false },
		{ " " HEX64, false },
		{ "0011", false },
		{ "zz112233445566778899aabbccddeeff"
		  "00112233445566778899aabbccddeeff",
		    false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct node_key *key = NULL;

		write_file("key", cases[i].text, 0600);
		cr_expect_eq(node_key_load(path("key"), &key, &err),
		    cases[i].ok, "case %zu", i);
		cr_expect_eq(key != NULL, cases[i].ok, "case %zu", i);
		cr_expect_null(strstr(err.text, "zz11"), "no digits in errors");
		node_key_free(&key);
	}
}

Test(secret, a_key_that_others_may_read_is_refused)
{
	static const mode_t modes[] = { 0640, 0604, 0660, 0644, 0602 };
	struct node_key *key = NULL;

	for (size_t i = 0; i < COUNT(modes); i++) {
		write_file("key", HEX64, modes[i]);
		cr_expect_not(node_key_load(path("key"), &key, &err));
		cr_expect_eq(err.code, ERR_INVALID);
	}
	write_file("key", HEX64, 0400);
	cr_expect(node_key_load(path("key"), &key, &err));
	node_key_free(&key);
}

Test(secret, a_missing_file_gives_way_to_the_units_credential)
{
	struct node_key *key = NULL;

	cr_expect_not(node_key_load(path("key"), &key, &err));
	cr_expect_eq(err.code, ERR_ABSENT);
	cr_expect_not(node_key_load(NULL, &key, &err));
	cr_expect_not(node_key_load("", &key, &err));
	cr_expect_not(node_key_load(dir, &key, &err), "a folder is no key");

	setenv("CREDENTIALS_DIRECTORY", dir, 1);
	cr_expect_not(node_key_load(NULL, &key, &err));
	write_file("node_key", HEX64, 0440);
	cr_assert(node_key_load(NULL, &key, &err), "%s", err.text);
	node_key_free(&key);
	cr_assert(node_key_load(path("key"), &key, &err), "%s", err.text);
	node_key_free(&key);
}

Test(secret, a_secret_file_holds_a_text_for_us_alone)
{
	const char *text = NULL;

	write_file("key", "s3cret \xc3\xa9\n", 0600);
	cr_assert(
	    secret_file_read(arena, path("key"), &text, &err), "%s", err.text);
	cr_expect_str_eq(text, "s3cret \xc3\xa9");
	write_file("other", " \n", 0600);
	cr_expect_not(secret_file_read(arena, path("other"), &text, &err));
	cr_expect_not(secret_file_read(arena, path("absent"), &text, &err));
	write_file("node_key", "s3cret", 0640);
	cr_expect_not(secret_file_read(arena, path("node_key"), &text, &err));
	cr_expect(strstr(err.text, "open to others"), "%s", err.text);
	cr_expect_str_eq(text, "s3cret \xc3\xa9", "untouched");
}

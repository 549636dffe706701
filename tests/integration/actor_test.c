/* Actors: whose names they are, and keys that only the node key opens. */
#include <criterion/criterion.h>

#include "common/fediverse/actor.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_node.h"

static struct test_node *node;
static struct conn *conn;
static struct node_key *key;
static struct origin origin;

static void begin(void)
{
	struct err err;

	test_db_needed();
	node = test_node_new("nova.localhost");
	conn = test_db_conn(
	    test_db_as(node->arena, node->database, "postrider_frontd"));
	cr_assert(node_key_load(
	    arena_printf(node->arena, "%s/key", node->dir), &key, &err));
	cr_assert(origin_parse(node->arena, node->origin, &origin));
}

static void end(void)
{
	node_key_free(&key);
	conn_free(&conn);
	test_node_free(&node);
}

TestSuite(actor, .init = begin, .fini = end, .timeout = 60);

static bool make(
    const struct actor_draft *draft, struct actor *actor, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, node->arena);

	return actor_make(tx, key, draft, actor, err) && tx_commit(tx, err);
}

static struct actor made(const char *username)
{
	const struct actor_draft draft = { .username = username,
		.kind = "Service" };
	struct actor actor;
	struct err err;

	cr_assert(make(&draft, &actor, &err), "%s", err.text);
	return actor;
}

/* Does what the actor signs verify with the key it shows? */
static bool signs(const struct actor *actor)
{
	const struct bytes text = { "hello", 5 };
	struct pkey *private_half;
	struct pkey *public_half;
	struct err err;
	bool verified;

	if (!actor_key(node->arena, key, actor, &private_half, &err))
		return false;
	cr_assert(pkey_public(actor->public_key_pem, &public_half, &err));
	verified = pkey_verify(
	    public_half, text, pkey_sign(node->arena, private_half, text));
	pkey_free(&private_half);
	pkey_free(&public_half);
	return verified;
}

Test(actor, is_found_by_name_id_and_person_and_signs)
{
	struct actor_draft draft = { .username = "Alice", .kind = "Person" };
	struct actor actor;
	struct actor found[3];
	struct err err;
	bool known[3];

	draft.user_id = test_db_number(node->database,
	    "INSERT INTO users (username, password_hash) VALUES ('alice', '!')"
	    " RETURNING id AS n");
	cr_assert(make(&draft, &actor, &err), "%s", err.text);
	{
		AUTO(tx_end) struct tx *tx = tx_new(conn, node->arena);

		cr_assert(
		    actor_by_name(tx, "aLICE", &found[0], &known[0], &err) &&
		    actor_by_id(tx, actor.id, &found[1], &known[1], &err) &&
		    actor_by_user(
			tx, draft.user_id, &found[2], &known[2], &err));
	}
	for (size_t i = 0; i < COUNT(found); i++) {
		cr_assert(known[i]);
		cr_expect_str_eq(found[i].id, actor.id);
		cr_expect_str_eq(found[i].username, "Alice");
		cr_expect(signs(&found[i]));
	}
	cr_expect_str_eq(actor_key_id(node->arena, &origin, &actor),
	    arena_printf(node->arena, "%s/users/Alice#main-key", node->origin));
}

Test(actor, a_name_serves_once_even_after_its_deletion)
{
	static const char *const bad[] = { "", "a b", ".a", "a-", "a/b", "a@b",
		"\xc3\xbc",
		"a1234567890123456789012345678901234567890123456789012345678901"
		"2345" };
	struct actor_draft draft = { .username = "BOT", .kind = "Service" };
	struct actor actor = made("bot");
	struct err err;

	cr_expect_not(make(&draft, &actor, &err));
	cr_expect_eq(err.code, ERR_CONFLICT);
	{
		AUTO(tx_end) struct tx *tx = tx_new(conn, node->arena);

		cr_assert(
		    actor_delete(tx, &actor, &err) && tx_commit(tx, &err));
	}
	cr_expect(actor.deleted_at);
	cr_expect(signs(&actor), "its last words");
	cr_expect_not(make(&draft, &actor, &err));
	cr_expect_eq(err.code, ERR_CONFLICT);
	for (size_t i = 0; i < COUNT(bad); i++) {
		draft.username = bad[i];
		cr_expect_not(make(&draft, &actor, &err), "%s", bad[i]);
		cr_expect_eq(err.code, ERR_INVALID);
	}
	draft = (struct actor_draft){ .username = "thing", .kind = "Tea" };
	cr_expect_not(make(&draft, &actor, &err));
}

Test(actor, a_rotated_key_has_the_old_id)
{
	struct actor before = made("bot");
	struct actor after = before;
	struct err err;

	{
		AUTO(tx_end) struct tx *tx = tx_new(conn, node->arena);

		cr_assert(
		    actor_rotate(tx, key, &after, &err) && tx_commit(tx, &err));
	}
	cr_expect_str_eq(after.id, before.id);
	cr_expect_str_eq(actor_key_id(node->arena, &origin, &after),
	    actor_key_id(node->arena, &origin, &before));
	cr_expect_str_neq(after.public_key_pem, before.public_key_pem);
	cr_expect(signs(&after));
}

Test(actor, a_box_of_another_row_or_key_does_not_open)
{
	struct actor one = made("one");
	struct actor two = made("two");
	struct pkey *pkey;
	struct err err;

	one.private_key = two.private_key;
	cr_expect_not(actor_key(node->arena, key, &one, &pkey, &err));
	cr_expect_not(
	    memmem(two.private_key.data, two.private_key.len, "PRIVATE", 7));
}

Test(actor, the_instance_has_one_of_its_own)
{
	struct actor first;
	struct actor again;
	struct actor other;
	struct err err;
	bool found;

	{
		AUTO(tx_end) struct tx *tx = tx_new(conn, node->arena);

		cr_assert(actor_instance(tx, &first, &found, &err));
		cr_expect_not(found);
		cr_assert(actor_instance_make(tx, key, &origin, &first, &err) &&
		    actor_instance_make(tx, key, &origin, &again, &err) &&
		    actor_by_name(tx, "nova.localhost", &other, &found, &err) &&
		    tx_commit(tx, &err));
	}
	cr_expect_not(found, "a person may not be mistaken for it");
	cr_expect_str_eq(first.id, again.id);
	cr_expect(signs(&again));
	cr_expect_str_eq(actor_url(node->arena, &origin, &again),
	    arena_printf(node->arena, "%s/actor", node->origin));
}

Test(actor, goes_with_its_person)
{
	struct actor_draft draft = { .username = "carol", .kind = "Person" };
	struct actor actor;
	struct err err;

	draft.user_id = test_db_number(node->database,
	    "INSERT INTO users (username, password_hash) VALUES ('carol', '!')"
	    " RETURNING id AS n");
	cr_assert(make(&draft, &actor, &err), "%s", err.text);
	test_db_script(node->database,
	    "SET ROLE postrider_frontd;"
	    "UPDATE users SET is_deleted = true WHERE username = 'carol'");
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(deleted_at) AS n FROM fediverse_actors"),
	    1);
}

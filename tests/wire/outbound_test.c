/*
 * What our node sends for the actions that were recorded: the same bytes, but
 * for ids, times, nonce and signature.
 */
#include <criterion/criterion.h>

#include "tests/wire/talk.h"

static const char relay[] = TALK_RELAY;

Test(wire_outbound, create_edit_delete_020_021_022, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *id;

	talk_begin(&talk);
	id = talk_write(&talk, "{\"content\":\"hello bob, this is alice\"}");
	sent = talk_batch(&talk, 0);
	talk_expect(
	    &talk, talk_recorded(&talk, "020-dm-message-create", 0), &sent);
	/* As hydrated by bob's answer in the record. */
	talk_sql(&talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral'"
	    " WHERE home_user_id IS NOT NULL");
	talk_edit(&talk, id, "hello bob, edited");
	sent = talk_batch(&talk, 1);
	talk_expect(
	    &talk, talk_recorded(&talk, "021-dm-message-edit", 0), &sent);
	talk_erase(&talk, id);
	sent = talk_batch(&talk, 2);
	cr_expect(strstr(sent.body.data, "\"eventType\":\"delete\""));
	cr_expect(!strstr(sent.body.data, "participants"));
	talk_end(&talk);
}

static const char *last_delete_of_022(struct talk *talk)
{
	struct recording recording =
	    recording_load(talk->arena, "022-dm-message-delete");
	const char *body = NULL;

	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].from, "nova.test") &&
		    exchange_has_only(
			talk->arena, &recording.exchanges[i], "delete"))
			body = recording.exchanges[i].body.data;
	cr_assert(body);
	return body;
}

Test(wire_outbound, delete_has_the_recorded_bytes_022, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *id;

	talk_begin(&talk);
	id = talk_write(&talk, "{\"content\":\"to be deleted\"}");
	talk_batch(&talk, 0);
	talk_erase(&talk, id);
	sent = talk_batch(&talk, 1);
	talk_expect(&talk, last_delete_of_022(&talk), &sent);
	talk_end(&talk);
}

Test(wire_outbound, changes_fold_while_the_peer_is_away_024, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *kept;
	const char *gone;
	const char *fresh;

	talk_begin(&talk);
	talk_sql(&talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral'"
	    " WHERE home_user_id IS NOT NULL");
	kept =
	    talk_write(&talk, "{\"content\":\"delivered before the outage\"}");
	sent = talk_batch(&talk, 0);
	talk_expect(&talk, talk_recorded(&talk, "024-dm-coalesce", 0), &sent);
	gone = talk_write(
	    &talk, "{\"content\":\"delivered before the outage (2)\"}");
	talk_batch(&talk, 1);
	/* The peer pauses; what happens meanwhile folds. */
	talk_sql(&talk,
	    "UPDATE federation_peers SET paused_until = now() +"
	    " interval '1 hour'");
	fresh = talk_write(&talk, "{\"content\":\"first version\"}");
	talk_edit(&talk, fresh, "second version, still undelivered");
	talk_erase(&talk, talk_write(&talk, "{\"content\":\"never seen\"}"));
	talk_edit(&talk, kept, "edit one");
	talk_edit(&talk, kept, "edit two");
	talk_edit(&talk, gone, "three");
	talk_erase(&talk, gone);
	cr_assert_eq(test_peer_count(talk.peer, relay), 2);
	talk_sql(&talk, "UPDATE federation_peers SET paused_until = NULL");
	sent = talk_batch(&talk, 2);
	talk_expect(&talk, talk_recorded(&talk, "024-dm-coalesce", 3), &sent);
	talk_end(&talk);
}

Test(wire_outbound, reply_025, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *id;

	talk_begin(&talk);
	talk_sql(&talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral'"
	    " WHERE home_user_id IS NOT NULL");
	id = talk_write(&talk, "{\"content\":\"first\"}");
	talk_batch(&talk, 0);
	talk_write(&talk,
	    arena_printf(talk.arena,
		"{\"content\":\"reply to my own\",\"replyToId\":\"%s\"}", id));
	sent = talk_batch(&talk, 1);
	cr_expect(strstr(sent.body.data,
	    arena_printf(talk.arena, "\"replyToId\":\"%s\"", id)));
	talk_end(&talk);
}

/* A refusal for now is set aside and comes again with a new nonce. */
Test(wire_outbound, a_refused_create_comes_again_141, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request first;
	struct test_peer_request second;

	talk_begin(&talk);
	talk.rejects = true;
	talk_write(&talk, "{\"content\":\"refused for now\"}");
	first = talk_batch(&talk, 0);
	talk_sql(&talk,
	    "UPDATE federation_outbox SET retry_at = now()"
	    " WHERE retry_at IS NOT NULL");
	for (int i = 0; i < 200 && test_peer_count(talk.peer, relay) < 2; i++) {
		talk_sql(&talk,
		    "UPDATE federation_outbox SET retry_at = now()"
		    " WHERE retry_at IS NOT NULL");
		test_peer_got(talk.peer, relay, 2, 50);
	}
	second = talk_batch(&talk, 1);
	cr_expect_str_eq(first.body.data, second.body.data);
	cr_expect_str_neq(
	    test_peer_header(talk.arena, &first, "x-federation-nonce"),
	    test_peer_header(talk.arena, &second, "x-federation-nonce"));
	talk_end(&talk);
}

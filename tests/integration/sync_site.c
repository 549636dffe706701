#include "tests/integration/sync_site.h"

#include "common/chat/channel.h"
#include "common/federation/outbox_message.h"
#include "common/federation/sync.h"
#include "tests/lib/test_db.h"

static void must(bool good, const struct err *err)
{
	if (good)
		return;
	fprintf(stderr, "sync site: %s\n", err->text);
	abort();
}

/* ---- people and conversations ---- */

int64_t sync_site_person(
    struct relay_site *site, const char *host, const char *home_id)
{
	test_db_script(site->conninfo,
	    arena_printf(site->arena,
		"INSERT INTO users (password_hash, username, home_instance, "
		"home_user_id) VALUES ('!federation-replicated', '%s@%s', "
		"'%s', '%s')",
		home_id, host, host, home_id));
	return relay_site_number(site, "SELECT max(id) AS n FROM users");
}

int64_t sync_site_pair(struct relay_site *site, int64_t a, int64_t b)
{
	AUTO(tx_end) struct tx *tx = tx_new(site->conn, site->arena);
	struct user one;
	struct user other;
	struct channel channel;
	struct err err = { 0 };
	bool created;

	must(user_by_id(tx, a, &one, &err) && user_by_id(tx, b, &other, &err) &&
		channel_open_pair(tx, &one, &other, &channel, &created, &err) &&
		tx_commit(tx, &err),
	    &err);
	return channel.id;
}

int64_t sync_site_group(struct relay_site *site, const char *federated_id,
    int64_t owner, const char *members)
{
	test_db_script(site->conninfo,
	    arena_printf(site->arena,
		"WITH made AS (INSERT INTO dm_channels (is_group, owner_id, "
		"federated_id) VALUES (true, %" PRId64 ", '%s') RETURNING id) "
		"INSERT INTO dm_members (dm_channel_id, user_id) "
		"SELECT made.id, u.id FROM made, unnest(ARRAY[%s]::bigint[]) "
		"AS u(id)",
		owner, federated_id, members));
	return relay_site_number(site,
	    arena_printf(site->arena,
		"SELECT id AS n FROM dm_channels WHERE federated_id = '%s'",
		federated_id));
}

/* ---- what is said ---- */

static void tell(struct relay_site *site, struct tx *tx, const char *type,
    const struct message *message)
{
	struct err err = { 0 };

	must(outbox_add_message(tx, &site->node, type, message, NULL, &err) &&
		tx_commit(tx, &err),
	    &err);
}

struct message sync_site_say(struct relay_site *site, int64_t channel,
    int64_t author, const char *content)
{
	AUTO(tx_end) struct tx *tx = tx_new(site->conn, site->arena);
	const struct draft draft = {
		.channel = channel,
		.author = author,
		.content = content,
	};
	struct message message;
	struct err err = { 0 };

	must(message_create(tx, &draft, &message, &err), &err);
	tell(site, tx, "create", &message);
	return message;
}

void sync_site_edit(
    struct relay_site *site, const struct message *message, const char *content)
{
	AUTO(tx_end) struct tx *tx = tx_new(site->conn, site->arena);
	struct message edited;
	struct err err = { 0 };

	must(message_edit(
		 tx, message->id, message->user_id, content, &edited, &err),
	    &err);
	tell(site, tx, "update", &edited);
}

void sync_site_delete(struct relay_site *site, const struct message *message)
{
	AUTO(tx_end) struct tx *tx = tx_new(site->conn, site->arena);
	struct message deleted;
	struct err err = { 0 };

	must(message_delete(tx, message->id, message->user_id, &deleted, &err),
	    &err);
	tell(site, tx, "delete", &deleted);
}

void sync_site_log(struct relay_site *site, const struct sync_log_row *row)
{
	test_db_script(site->conninfo,
	    arena_printf(site->arena,
		"INSERT INTO federation_mutation_log (context_type, "
		"context_id, mutation_type, entity_id, payload, hosts) VALUES "
		"('%s', '%s', '%s', '%s', $payload$%s$payload$, "
		"ARRAY[%s]::text[])",
		row->context_type, row->context_id, row->event_type,
		row->entity_id, row->payload, row->hosts));
}

/* ---- asking ---- */

const char *sync_site_ask(
    struct relay_site *site, const char *host, const char *question)
{
	AUTO(tx_end) struct tx *tx = tx_new(site->conn, site->arena);
	struct sync_question read;
	struct buf out;
	struct err err = { 0 };

	must(sync_read(site->arena,
		 (struct bytes){ question, strlen(question) }, &read, &err) &&
		sync_answer(tx, &site->node, host, &read, &out, &err) &&
		tx_commit(tx, &err),
	    &err);
	return out.data;
}

static const struct json *parsed(const char *answer, struct arena *arena)
{
	const struct json *value = NULL;
	struct err err = { 0 };

	must(json_parse(
		 arena, (struct bytes){ answer, strlen(answer) }, &value, &err),
	    &err);
	return value;
}

static const char *listed(
    struct relay_site *site, const char *answer, const char *name)
{
	const struct json *events =
	    json_member(parsed(answer, site->arena), "events");
	struct buf text;

	buf_init(&text, site->arena, 1 << 20);
	buf_text(&text, "");
	for (size_t i = 0; i < json_count(events); i++)
		buf_printf(&text, "%s%s", i ? " " : "",
		    json_string(json_member(json_element(events, i), name)));
	return text.data ? text.data : "";
}

const char *sync_site_types(struct relay_site *site, const char *answer)
{
	return listed(site, answer, "eventType");
}

const char *sync_site_ids(struct relay_site *site, const char *answer)
{
	return listed(site, answer, "messageId");
}

int64_t sync_site_checkpoint(const char *answer)
{
	const char *at = strstr(answer, "\"checkpoint\":");

	return at ? strtoll(at + 13, NULL, 10) : -1;
}

bool sync_site_more(const char *answer)
{
	return strstr(answer, "\"hasMore\":true") != NULL;
}

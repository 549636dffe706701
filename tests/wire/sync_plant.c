#include "tests/wire/sync_plant.h"

#include "tests/lib/test_db.h"

bool sync_plant_is_answer(
    const struct exchange *exchange, const char *asker, const char *us)
{
	return !strcmp(exchange->from, asker) && !strcmp(exchange->to, us) &&
	    !strcmp(exchange->path, "/api/federation/sync") &&
	    exchange->status == 200;
}

const char *sync_plant_plain(struct arena *arena, const char *text)
{
	static const char *const newer[][2] = {
		{ ",\"status\":null}", "}" },
		{ ",\"status\":\"online\"}", "}" },
		{ ",\"status\":\"idle\"}", "}" },
		{ ",\"status\":\"dnd\"}", "}" },
		{ ",\"status\":\"offline\"}", "}" },
		{ "\"playable\":null,", "" },
		{ "\"playable\":true,", "" },
		{ "\"playable\":false,", "" },
	};

	for (size_t i = 0; i < COUNT(newer); i++)
		text = text_replaced(arena, text, newer[i][0], newer[i][1]);
	return text;
}

/* Each event once, and the rows that were read but told nothing. */
static const char events[] =
    "CREATE TABLE told AS SELECT DISTINCT ON (pass, ms, type, id) * FROM ("
    "  SELECT CASE WHEN question ->> 'contextType' IN ('friend', 'profile')"
    "              THEN question ->> 'contextType' ELSE 'dm' END AS pass,"
    "         (e ->> 'timestamp')::bigint AS ms, e ->> 'eventType' AS type,"
    "         e ->> 'messageId' AS id, e ->> 'dmChannelId' AS channel,"
    "         e::text AS event, place, nth"
    "    FROM raw, json_array_elements(answer -> 'events')"
    "    WITH ORDINALITY AS l(e, nth)) AS t "
    "ORDER BY pass, ms, type, id, place, nth;"
    "CREATE TABLE skipped AS SELECT pass, min(ms) AS ms,"
    "       many - count(*) AS rows FROM ("
    "  SELECT place, CASE WHEN question ->> 'contextType' IN ('friend',"
    "              'profile') THEN question ->> 'contextType' ELSE 'dm' END"
    "              AS pass, (question ->> 'limit')::bigint AS many,"
    "         (e ->> 'timestamp')::bigint AS ms"
    "    FROM raw, json_array_elements(answer -> 'events') AS e"
    "   WHERE (answer ->> 'hasMore')::boolean"
    "     AND question ->> 'federatedId' IS NULL) AS t "
    "GROUP BY place, pass, many HAVING count(*) < many;";

static const char people[] =
    "UPDATE users SET username = 'x-' || username;"
    "CREATE TABLE who AS "
    "SELECT p ->> 'homeUserId' AS home_id, p ->> 'homeInstance' AS instance,"
    "       (p -> 'profile')::text AS profile, NULL AS local_id, ms"
    "  FROM told, json_array_elements(event::json -> 'participants') AS p "
    "UNION ALL "
    "SELECT m ->> 'homeUserId', m ->> 'homeInstance', NULL, m ->> 'userId', 0"
    "  FROM told, json_extract_path(event::json, 'message') AS m "
    " WHERE m IS NOT NULL;"
    "INSERT INTO users (id, username, display_name, avatar, avatar_color,"
    "       password_hash, home_instance, home_user_id) "
    "SELECT CASE WHEN native THEN home_id::bigint"
    "            ELSE coalesce(local_id::bigint, snowflake()) END,"
    "       coalesce(p ->> 'username', home_id || '@' || instance),"
    "       p ->> 'displayName', p ->> 'avatar', p ->> 'avatarColor', 'x',"
    "       CASE WHEN NOT native THEN instance END,"
    "       CASE WHEN NOT native THEN home_id END"
    "  FROM (SELECT home_id, instance, instance LIKE 'https://%' AS native,"
    "               max(local_id) AS local_id, (array_agg(profile ORDER BY ms"
    "               DESC) FILTER (WHERE profile IS NOT NULL))[1]::json AS p"
    "          FROM who GROUP BY home_id, instance ORDER BY 1, 2) AS t;"
    "CREATE FUNCTION person(j json) RETURNS bigint LANGUAGE sql AS $$"
    "  SELECT id FROM users WHERE CASE"
    "    WHEN j ->> 'homeInstance' LIKE 'https://%'"
    "    THEN id::text = j ->> 'homeUserId' AND home_instance IS NULL"
    "    ELSE home_user_id = j ->> 'homeUserId'"
    "     AND home_instance = j ->> 'homeInstance' END $$;";

static const char conversations[] =
    "CREATE TABLE members AS "
    "SELECT t.channel::bigint AS channel, person(p) AS person FROM ("
    "  SELECT DISTINCT ON (channel) * FROM told"
    "   WHERE type IN ('create', 'update') ORDER BY channel, ms DESC) AS t,"
    "  json_array_elements(t.event::json -> 'participants') AS p;"
    "INSERT INTO dm_channels (id, is_group, owner_id, federated_id, pair_low,"
    "       pair_high) "
    "SELECT c.channel, federated_id IS NOT NULL,"
    "       CASE WHEN federated_id IS NOT NULL THEN low END, federated_id,"
    "       CASE WHEN federated_id IS NULL THEN low END,"
    "       CASE WHEN federated_id IS NULL THEN high END"
    "  FROM (SELECT channel, min(person) AS low, max(person) AS high"
    "          FROM members GROUP BY channel) AS c"
    "  LEFT JOIN (SELECT channel::bigint AS channel,"
    "                    max(event::json ->> 'federatedId') AS federated_id"
    "               FROM told WHERE type LIKE 'member_%' GROUP BY channel)"
    "    AS g ON g.channel = c.channel;"
    "INSERT INTO dm_members SELECT channel, person FROM members;";

static const char messages[] =
    "SET session_replication_role = replica;"
    "CREATE TABLE said AS SELECT DISTINCT ON (id) id::bigint AS id,"
    "       channel::bigint AS channel, (event::json -> 'message')::text AS m"
    "  FROM told WHERE type IN ('create', 'update') ORDER BY id, ms DESC;"
    "INSERT INTO dm_messages (id, dm_channel_id, user_id, content,"
    "       reply_to_id, edited_at, created_at) "
    "SELECT id, channel, person(m::json), m::json ->> 'content',"
    "       (m::json ->> 'replyToId')::bigint,"
    "       to_timestamp((m::json ->> 'editedAt')::numeric / 1000),"
    "       to_timestamp((m::json ->> 'createdAt')::numeric / 1000) FROM said;"
    "INSERT INTO attachments (id, dm_message_id, filename, original_name,"
    "       mimetype, size, width, height, duration, thumbnail_filename) "
    "SELECT (f ->> 'id')::bigint, said.id, f ->> 'filename',"
    "       f ->> 'originalName', f ->> 'mimetype', (f ->> 'size')::bigint,"
    "       (f ->> 'width')::integer, (f ->> 'height')::integer,"
    "       (f ->> 'duration')::double precision, f ->> 'thumbnailFilename'"
    "  FROM said, json_array_elements(m::json -> 'attachments') AS f;";

/* $us$ is our origin: what we store says where a message was born. */
static const char log_rows[] =
    "CREATE FUNCTION stored(type text, id text, name text, value text)"
    " RETURNS text LANGUAGE sql AS $$"
    "  SELECT CASE WHEN name <> 'reaction' THEN value ELSE"
    "    '{\"messageId\":\"' || id || '\",\"messageHomeInstance\":"
    "\"https://%s\",' || CASE WHEN type = 'reaction_remove' THEN"
    "      regexp_replace(substr(value, 2), ',\"createdAt\":[0-9]+', '')"
    "      ELSE substr(value, 2) END END $$;"
    "CREATE TABLE planted AS SELECT row_number() OVER (ORDER BY ms, nth) AS"
    "       n, t.* FROM ("
    "  SELECT pass, ms, type, id, coalesce(channel, 'c') AS channel, event,"
    "         nth FROM told UNION ALL"
    "  SELECT pass, ms, 'create', '1', '1', NULL, 0"
    "    FROM skipped, generate_series(1, rows)) AS t;"
    "INSERT INTO federation_mutation_log (id, context_type, context_id,"
    "       mutation_type, entity_id, mutated_at, payload) "
    "OVERRIDING SYSTEM VALUE "
    "SELECT n, pass, channel, type, CASE WHEN type LIKE 'reaction_%%'"
    "       THEN 'r' ELSE id END, to_timestamp(ms::numeric / 1000),"
    "       CASE WHEN type NOT IN ('create', 'update', 'delete') THEN ("
    "         SELECT string_agg(to_json(key)::text || ':' ||"
    "                stored(type, id, key, value::text), ',' ORDER BY place)"
    "           FROM json_each(event::json) WITH ORDINALITY"
    "             AS m(key, value, place)"
    "          WHERE key NOT IN ('eventType', 'contextType', 'messageId',"
    "                'encryptionVersion', 'timestamp')) END"
    "  FROM planted;"
    "INSERT INTO federation_sync_entries (log_id, host, context_type,"
    "       context_id, ready_ms) SELECT n, '%s', pass, channel, ms"
    "  FROM planted;";

void sync_plant(const char *conninfo, const struct recording *recording,
    const char *asker, const char *us)
{
	struct arena *arena = arena_new();

	test_db_script(conninfo,
	    "CREATE TABLE raw (place integer GENERATED ALWAYS AS IDENTITY,"
	    " question json, answer json)");
	for (size_t i = 0; i < recording->count; i++) {
		const struct exchange *exchange = &recording->exchanges[i];

		if (!sync_plant_is_answer(exchange, asker, us))
			continue;
		test_db_script(conninfo,
		    arena_printf(arena,
			"INSERT INTO raw (question, answer) VALUES "
			"($raw$%.*s$raw$, $raw$%s$raw$)",
			(int)exchange->body.len,
			(const char *)exchange->body.data,
			sync_plant_plain(arena, exchange->answer)));
	}
	test_db_script(conninfo, events);
	test_db_script(conninfo, people);
	test_db_script(conninfo, conversations);
	test_db_script(conninfo, messages);
	test_db_script(conninfo, arena_printf(arena, log_rows, us, asker));
	arena_free(&arena);
}

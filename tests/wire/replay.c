#include "tests/wire/replay.h"

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "common/pg/sql.h"
#include "tests/lib/test_http.h"

enum { ID_DIGITS_MIN = 15 };
static const int64_t TIME_MIN = 1000000000000;

static const char alice_sql[] =
    "INSERT INTO users (id, username, display_name, avatar_color,"
    " password_hash) VALUES"
    " (385898133746929664, 'alice', 'Alice', 'amber', '!')";
static const char bob_sql[] =
    "INSERT INTO users (id, username, display_name, avatar_color,"
    " password_hash) VALUES"
    " (385898137274384384, 'bob', 'Bob', 'coral', '!')";

void replay_sql(struct replay *replay, const char *sql)
{
	struct conn_def def = {
		.conninfo = replay->node->database,
		.application = "wire",
	};
	struct conn *conn = conn_new(&def);
	struct err err = { 0 };

	cr_assert(conn_script(conn, sql, &err), "%s: %s", sql, err.text);
	conn_free(&conn);
}

void replay_begin_with(struct replay *replay, const char *host,
    const char *policy, int rate_general)
{
	struct arena *arena = arena_new();
	const char *settings[] = {
		arena_printf(arena, "origin=https://%s", host),
		"rate_limits=on",
		arena_printf(arena, "rate_general=%d", rate_general),
		NULL,
	};

	*replay = (struct replay){ .arena = arena };
	replay->node = test_node_new(host);
	replay_sql(replay,
	    arena_printf(arena,
		"UPDATE instance_settings SET peer_accept_policy = '%s'",
		policy));
	replay->port = test_frontd(replay->node, settings)->port;
	replay->admin = test_person(replay->node, replay->port, "root");
	replay->member = test_person(replay->node, replay->port, "member");
	replay_sql(replay, !strcmp(host, "nova.test") ? alice_sql : bob_sql);
}

void replay_begin(struct replay *replay, const char *host, const char *policy)
{
	replay_begin_with(replay, host, policy, 100000);
}

void replay_end(struct replay *replay)
{
	test_node_free(&replay->node);
	arena_free(&replay->arena);
}

void replay_peer(struct replay *replay, const char *host, const char *secret)
{
	struct test_reply reply = test_post(replay->arena, replay->port,
	    "/api/federation/peer/accept", NULL,
	    arena_printf(replay->arena,
		"{\"sourceOrigin\":\"https://%s\",\"hmacSecret\":\"%s\"}", host,
		secret));

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

/* ---- comparing ---- */

static bool is_id(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits >= ID_DIGITS_MIN && text[digits] == '\0';
}

/* The same recorded id is always the same one of ours. */
static bool id_agrees(
    struct replay *replay, const char *recorded, const char *ours)
{
	for (size_t i = 0; i < replay->id_count; i++)
		if (!strcmp(replay->ids[i][0], recorded))
			return !strcmp(replay->ids[i][1], ours);
	cr_assert_lt(replay->id_count, COUNT(replay->ids));
	replay->ids[replay->id_count][0] = recorded;
	replay->ids[replay->id_count++][1] = ours;
	return is_id(ours);
}

static bool agree(struct replay *replay, const struct json *recorded,
    const struct json *ours);

static bool texts_agree(
    struct replay *replay, const struct json *recorded, const struct json *ours)
{
	const char *a = json_string(recorded);
	const char *b = json_string(ours);

	if (!a || !b)
		return a == b;
	return !strcmp(a, b) || (is_id(a) && id_agrees(replay, a, b));
}

static bool numbers_agree(const struct json *recorded, const struct json *ours)
{
	int64_t a;
	int64_t b;

	if (!json_whole(recorded, &a) || !json_whole(ours, &b))
		return false;
	return a == b || (a > TIME_MIN && b > TIME_MIN);
}

/* Every member that the record has is ours too; we may say more. */
static bool members_agree(
    struct replay *replay, const struct json *recorded, const struct json *ours)
{
	static const char *const names[] = { "accepted", "rejected",
		"maxUploadSize", "messageId", "reason", "error", "statusCode",
		"code", "success", "peer", "peers", "id", "origin",
		"instanceName", "status", "lastSeenAt", "lastFailureAt",
		"consecutiveFailures", "lastSyncedAt", "createdAt",
		"rotationInProgress", "secretRotatedAt",
		"autoRotateIntervalDays", "gracePeriodMs" };
	size_t known = 0;

	for (size_t i = 0; i < COUNT(names); i++) {
		const struct json *a = json_member(recorded, names[i]);

		if (!a)
			continue;
		known++;
		if (!agree(replay, a, json_member(ours, names[i])))
			return false;
	}
	return known > 0 || json_count(recorded) == 0;
}

static bool elements_agree(
    struct replay *replay, const struct json *recorded, const struct json *ours)
{
	if (json_count(recorded) != json_count(ours))
		return false;
	for (size_t i = 0; i < json_count(recorded); i++)
		if (!agree(replay, json_element(recorded, i),
			json_element(ours, i)))
			return false;
	return true;
}

static bool agree(
    struct replay *replay, const struct json *recorded, const struct json *ours)
{
	if (json_type(recorded) != json_type(ours))
		return false;
	switch (json_type(recorded)) {
	case JSON_TEXT:
		return texts_agree(replay, recorded, ours);
	case JSON_NUMBER:
		return numbers_agree(recorded, ours);
	case JSON_ARRAY:
		return elements_agree(replay, recorded, ours);
	case JSON_OBJECT:
		return members_agree(replay, recorded, ours);
	case JSON_BOOL:
	case JSON_NULL:
	case JSON_ABSENT:
		return true;
	}
	return false;
}

bool replay_agree(struct replay *replay, const char *recorded, const char *ours)
{
	struct err err = { 0 };
	const struct json *a = NULL;
	const struct json *b = NULL;

	return json_parse(replay->arena,
		   (struct bytes){ recorded, strlen(recorded) }, &a, &err) &&
	    json_parse(replay->arena, (struct bytes){ ours, strlen(ours) }, &b,
		&err) &&
	    agree(replay, a, b);
}

/* ---- sending ---- */

static const char *with_our_ids(struct replay *replay, const char *path)
{
	for (size_t i = 0; i < replay->id_count; i++) {
		const char *at = strstr(path, replay->ids[i][0]);

		if (at)
			path = arena_printf(replay->arena, "%.*s%s%s",
			    (int)(at - path), path, replay->ids[i][1],
			    at + strlen(replay->ids[i][0]));
	}
	return path;
}

static const char *time_moved(
    struct replay *replay, const struct exchange *exchange)
{
	const char *then = exchange_header(exchange, "x-federation-timestamp");
	char *end;
	long long ms = then ? strtoll(then, &end, 10) : 0;

	if (!then || *end || end == then)
		return then;
	return arena_printf(replay->arena, "%lld",
	    ms - (long long)exchange->at + (long long)clock_wall_ms());
}

static const char *upper_hex(struct arena *arena, const char *signature)
{
	char *text = arena_text(arena, signature);

	for (char *at = text + strlen("sha256="); *at; at++)
		if (*at >= 'a')
			*at = (char)(*at - 'a' + 'A');
	return text;
}

static const char *signature_now(struct replay *replay,
    const struct exchange *exchange, const char *timestamp)
{
	const char *then = exchange_header(exchange, "x-federation-signature");
	const char *nonce = exchange_header(exchange, "x-federation-nonce");
	char text[SIGN_TEXT_MAX];

	if (!then || !exchange->signature_valid || exchange->signature_over ||
	    !exchange->secret)
		return then;
	sign_make(exchange->secret, timestamp, nonce && *nonce ? nonce : NULL,
	    exchange->body, text);
	return strpbrk(then + strlen("sha256="), "ABCDEF")
	    ? upper_hex(replay->arena, text)
	    : arena_text(replay->arena, text);
}

static void header_line(struct buf *out, const char *name, const char *value)
{
	if (value)
		buf_printf(out, "%s: %s\r\n", name, value);
}

static const char *headers_now(
    struct replay *replay, const struct exchange *exchange)
{
	const char *timestamp = time_moved(replay, exchange);
	struct buf out;

	buf_init(&out, replay->arena, 1 << 20);
	buf_text(&out, "");
	header_line(&out, "X-Federation-Signature",
	    signature_now(replay, exchange, timestamp));
	header_line(&out, "X-Federation-Origin",
	    exchange_header(exchange, "x-federation-origin"));
	header_line(&out, "X-Federation-Timestamp", timestamp);
	header_line(&out, "X-Federation-Nonce",
	    exchange_header(exchange, "x-federation-nonce"));
	return out.data;
}

static const char *token_for(
    const struct replay *replay, const struct exchange *exchange)
{
	if (strcmp(exchange->from, "client") ||
	    !json_member(exchange->headers, "Authorization"))
		return NULL;
	return exchange->status == 403 ? replay->member.token
				       : replay->admin.token;
}

static const struct deviation *deviation_of(
    const struct replay *replay, size_t place)
{
	const struct deviation *deviation = replay->deviations;

	while (deviation && deviation->why && deviation->place != place)
		deviation++;
	return deviation && deviation->why ? deviation : NULL;
}

static void check(struct replay *replay, const struct exchange *exchange,
    size_t place, const struct test_reply *reply)
{
	const struct deviation *deviation = deviation_of(replay, place);
	const char *want = exchange->answer;

	cr_expect_eq(reply->status,
	    deviation ? deviation->status : exchange->status,
	    "exchange %zu (%s): %d %s, recorded %d %s", place,
	    exchange->note ? exchange->note : "", reply->status, reply->body,
	    exchange->status, exchange->answer);
	if (deviation && deviation->answer && *deviation->answer != '{') {
		cr_expect(strstr(reply->body, deviation->answer),
		    "exchange %zu, %s: %s", place, deviation->why, reply->body);
		return;
	}
	if (deviation && deviation->answer)
		want = deviation->answer;
	cr_expect(replay_agree(replay, want, reply->body),
	    "exchange %zu (%s): %s, wanted %s", place,
	    exchange->note ? exchange->note : "", reply->body, want);
}

void replay_exchange(
    struct replay *replay, const struct recording *recording, size_t place)
{
	const struct exchange *exchange = &recording->exchanges[place];
	const struct deviation *deviation = deviation_of(replay, place);
	const char *type = exchange_header(exchange, "content-type");
	struct test_request request = {
		.method = exchange->method,
		.path = with_our_ids(replay, exchange->path),
		.token = token_for(replay, exchange),
		.content_type = type ? type : "",
		.headers = headers_now(replay, exchange),
		.bytes = exchange->body,
	};
	struct test_reply reply;

	if ((deviation && !deviation->status) || exchange->fault)
		return;
	reply = test_http(replay->arena, replay->port, &request);
	check(replay, exchange, place, &reply);
}

struct test_reply replay_as(struct replay *replay,
    const struct exchange *exchange, const char *origin, const char *secret)
{
	struct arena *arena = replay->arena;
	const char *timestamp =
	    arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];
	struct test_request request = {
		.method = exchange->method,
		.path = exchange->path,
		.content_type = "application/json",
		.bytes = exchange->body,
	};

	if (!secret)
		return test_http(arena, replay->port, &request);
	sign_make(secret, timestamp, nonce, exchange->body, signature);
	request.headers = arena_printf(arena,
	    "X-Federation-Origin: %s\r\nX-Federation-Timestamp: %s\r\n"
	    "X-Federation-Nonce: %s\r\nX-Federation-Signature: %s\r\n",
	    origin, timestamp, nonce, signature);
	return test_http(arena, replay->port, &request);
}

void replay_case(struct replay *replay, const char *name)
{
	struct recording recording = recording_load(replay->arena, name);

	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].to, replay->node->host))
			replay_exchange(replay, &recording, i);
}

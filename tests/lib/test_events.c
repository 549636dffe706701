#include "tests/lib/test_events.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/chat/channel.h"
#include "tests/lib/test_db.h"

enum { EVENTS_TEXT_MAX = 4 << 20 };

/*
 * In the templates @i is the place, @r the round, @m a message of ours, @z the
 * peer's person, @n ours, @f their pair's federated id, @t now, @o the peer's
 * origin, @h our host, @P both as participants.
 */
struct kind {
	const char *type;
	const char *text;
	const char *prepare; /* SQL before a batch, or NULL */
};

#define HEAD(type, context, id) \
	"{\"eventType\":\"" type "\",\"contextType\":\"" context \
	"\",\"messageId\":\"" id "\",\"encryptionVersion\":0,\"timestamp\":@t"
#define MESSAGE(edited) \
	",\"dmChannelId\":\"9\",\"participants\":[@P],\"message\":{" \
	"\"userId\":\"1\",\"homeUserId\":\"@z\",\"homeInstance\":\"@o\"," \
	"\"content\":\"a message of the usual length, number @i\"," \
	"\"replyToId\":null,\"editedAt\":" edited ",\"createdAt\":@t}}"
#define THEIRS "{\"homeUserId\":\"@z\",\"homeInstance\":\"@o\"}"
#define OURS "{\"homeUserId\":\"@n\",\"homeInstance\":\"@h\"}"
#define REACTION \
	",\"dmChannelId\":\"9\",\"reaction\":{\"messageId\":\"m@r-@i\"," \
	"\"messageHomeInstance\":\"@o\",\"userId\":\"1\",\"homeUserId\":" \
	"\"@z\",\"homeInstance\":\"@o\",\"emoji\":\"+\""
#define GROUP ",\"dmChannelId\":\"9\",\"federatedId\":\"group-@r-@i\""
#define FRIENDS(from, to) \
	",\"friendship\":{\"from\":" from ",\"to\":" to ",\"fromProfile\":{" \
	"\"username\":\"f\",\"displayName\":\"F\",\"avatar\":null," \
	"\"avatarColor\":null,\"banner\":null,\"bio\":null}," \
	"\"toProfile\":{\"username\":\"t\",\"displayName\":\"T\"," \
	"\"avatar\":null,\"avatarColor\":null,\"banner\":null,\"bio\":null}"

#define PAIR ",\"friendship\":{\"from\":" THEIRS ",\"to\":" OURS
#define READ \
	",\"federatedId\":\"@f\",\"readState\":{\"user\":" THEIRS \
	",\"messageRef\":{\"sourceInstance\":\"@o\"," \
	"\"sourceMessageId\":\"m@r-@i\"}}}"
#define REFUSED \
	",\"dmChannelId\":\"9\",\"attachmentId\":\"6\"," \
	"\"sourceFilename\":\"big.bin\",\"rejectionReason\":" \
	"\"size_limit_exceeded\",\"rejectionLimit\":1048576," \
	"\"affectedUserIds\":[\"@z\"]}"
#define TYPING \
	",\"federatedId\":\"@f\",\"participants\":[@P],\"typing\":{" \
	"\"homeUserId\":\"@z\",\"homeInstance\":\"@o\"," \
	"\"username\":\"zed\"}}"
#define JOIN \
	",\"membership\":{\"user\":" OURS ",\"addedBy\":" THEIRS \
	"},\"group\":{\"owner\":" THEIRS ",\"members\":[@P]}}"
#define PASSED_ON \
	",\"ownership\":{\"newOwner\":" OURS ",\"previousOwner\":" THEIRS "}}"
#define LEFT \
	",\"membership\":{\"user\":" THEIRS ",\"removedBy\":" THEIRS \
	",\"reason\":\"leave\"}}"
#define PROFILE \
	",\"profileUpdate\":{\"homeUserId\":\"@z\",\"homeInstance\":" \
	"\"@o\",\"profileUpdatedAt\":@t,\"displayName\":\"Zed @r\"," \
	"\"avatar\":null,\"banner\":null,\"accentColor\":null," \
	"\"avatarColor\":null,\"bio\":null}}"

static const char strangers[] =
    "DELETE FROM friends; DELETE FROM friend_requests;"
    "DELETE FROM friend_marks";

static const char asked[] =
    "DELETE FROM friend_marks; DELETE FROM friend_requests;"
    "INSERT INTO friend_requests (from_id, to_id) SELECT n.id, z.id FROM "
    "users n JOIN users z ON z.home_user_id = '90' || substr(n.username, 6) "
    "WHERE n.username LIKE 'crowd%'";

/* A message of each of ours with a file, known by @m. */
static const char written[] =
    "DELETE FROM dm_messages WHERE id BETWEEN 70000 AND 70099;"
    "INSERT INTO dm_messages (id, dm_channel_id, user_id, content) "
    "SELECT 70000 + substr(n.username, 6)::integer, c.id, n.id, 'a file' "
    "FROM users n JOIN dm_channels c ON NOT c.is_group AND n.id IN "
    "(c.pair_low, c.pair_high) WHERE n.username LIKE 'crowd%';"
    "INSERT INTO attachments (dm_message_id, filename, original_name, "
    "mimetype, size) SELECT id, 'big.bin', 'big.bin', "
    "'application/octet-stream', 9 FROM dm_messages "
    "WHERE id BETWEEN 70000 AND 70099";

/* clang-format off */
static const struct kind kinds[] = {
	{ "create",
	  HEAD("create", "dm", "m@r-@i") MESSAGE("null"), NULL },
	{ "update",
	  HEAD("update", "dm", "m@r-@i") MESSAGE("@t"), NULL },
	{ "reaction_add",
	  HEAD("reaction_add", "dm", "r@r-@i") REACTION ",\"createdAt\":@t}}", NULL },
	{ "reaction_remove",
	  HEAD("reaction_remove", "dm", "m@r-@i:1:+") REACTION "}}", NULL },
	{ "read_state_update",
	  HEAD("read_state_update", "dm", "read_state:@f:@r-@i") READ, NULL },
	{ "file_rejected",
	  HEAD("file_rejected", "dm", "@m") REFUSED, written },
	{ "dm_typing_start",
	  HEAD("dm_typing_start", "dm", "typing:@i:@t") TYPING, NULL },
	{ "dm_typing_stop",
	  HEAD("dm_typing_stop", "dm", "typing:@i:@t") TYPING, NULL },
	{ "delete",
	  HEAD("delete", "dm", "m@r-@i") ",\"dmChannelId\":\"9\"}", NULL },
	{ "friend_request_create",
	  HEAD("friend_request_create", "friend", "friend_req:@r:@i:@t") FRIENDS(THEIRS, OURS) ",\"status\":\"pending\",\"createdAt\":@t}}", strangers },
	{ "friend_request_cancel",
	  HEAD("friend_request_cancel", "friend", "friend_req:@r:c@i:@t") PAIR ",\"createdAt\":@t}}", NULL },
	{ "friend_request_update",
	  HEAD("friend_request_update", "friend", "friend_req:@r:u@i:@t") FRIENDS(OURS, THEIRS) ",\"status\":\"accepted\",\"createdAt\":@t}}", asked },
	{ "friend_add",
	  HEAD("friend_add", "friend", "friend:@r:@i:@t") FRIENDS(OURS, THEIRS) ",\"createdAt\":@t}}", NULL },
	{ "friend_remove",
	  HEAD("friend_remove", "friend", "friend:@r:x@i:@t") PAIR ",\"createdAt\":@t}}", NULL },
	{ "member_add",
	  HEAD("member_add", "dm", "member_add:@r:@i:@t") GROUP JOIN, NULL },
	{ "ownership_transfer",
	  HEAD("ownership_transfer", "dm", "ownership_transfer:@r:@i:@t") GROUP PASSED_ON, NULL },
	{ "member_remove",
	  HEAD("member_remove", "dm", "member_remove:@r:@i:@t") GROUP LEFT, NULL },
	{ "profile_update",
	  HEAD("profile_update", "profile", "@z") PROFILE, NULL },
};
/* clang-format on */

static const struct kind *kind_of(const char *type)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (strcmp(kinds[i].type, type) == 0)
			return &kinds[i];
	abort();
}

const char *test_events_type(size_t place)
{
	return place < COUNT(kinds) ? kinds[place].type : NULL;
}

void test_crowd_begin(struct test_crowd *crowd)
{
	test_db_script(crowd->conninfo,
	    arena_printf(crowd->arena,
		"INSERT INTO users (username, display_name, password_hash) "
		"SELECT 'crowd' || n, 'One', 'x' "
		"FROM generate_series(0, %d) AS n",
		TEST_CROWD - 1));
	for (int i = 0; i < TEST_CROWD; i++)
		crowd->natives[i] = test_db_number(crowd->conninfo,
		    arena_printf(crowd->arena,
			"SELECT id AS n FROM users WHERE username = 'crowd%d'",
			i));
}

void test_events_prepare(const struct test_crowd *crowd, const char *type)
{
	const struct kind *kind = kind_of(type);

	if (kind->prepare)
		test_db_script(crowd->conninfo, kind->prepare);
}

/* ---- filling in ---- */

struct blank {
	const struct test_crowd *crowd;
	int place;
	int round;
	int64_t now;
};

static void put_person(struct buf *out, const struct blank *blank, bool ours)
{
	const struct test_crowd *crowd = blank->crowd;

	if (ours)
		buf_printf(out,
		    "{\"homeUserId\":\"%" PRId64 "\",\"homeInstance\":\"%s\"",
		    crowd->natives[blank->place], crowd->host);
	else
		buf_printf(out,
		    "{\"homeUserId\":\"90%d\",\"homeInstance\":\"%s\"",
		    blank->place, crowd->origin);
	buf_text(out,
	    ",\"profile\":{\"username\":\"zed\",\"displayName\":\"Zed\","
	    "\"avatar\":null,\"avatarColor\":\"amber\"}}");
}

static void put_federated_id(struct buf *out, const struct blank *blank)
{
	char id[FEDERATED_ID_SIZE];
	struct arena *arena = blank->crowd->arena;

	federated_id_of_pair(arena_printf(arena, "90%d", blank->place),
	    arena_printf(
		arena, "%" PRId64, blank->crowd->natives[blank->place]),
	    id);
	buf_text(out, id);
}

static void put_blank(struct buf *out, const struct blank *blank, char what)
{
	switch (what) {
	case 'i':
		buf_int(out, blank->place);
		break;
	case 'r':
		buf_int(out, blank->round);
		break;
	case 'm':
		buf_int(out, 70000 + blank->place);
		break;
	case 'z':
		buf_printf(out, "90%d", blank->place);
		break;
	case 'n':
		buf_int(out, blank->crowd->natives[blank->place]);
		break;
	case 'f':
		put_federated_id(out, blank);
		break;
	case 't':
		buf_int(out, blank->now);
		break;
	case 'o':
		buf_text(out, blank->crowd->origin);
		break;
	case 'h':
		buf_text(out, blank->crowd->host);
		break;
	case 'P':
		put_person(out, blank, false);
		buf_char(out, ',');
		put_person(out, blank, true);
		break;
	default:
		abort();
	}
}

const char *test_events_of(
    const struct test_crowd *crowd, const char *type, int round, int count)
{
	const struct kind *kind = kind_of(type);
	struct blank blank = { crowd, 0, round, clock_wall_ms() };
	struct buf out;

	buf_init(&out, crowd->arena, EVENTS_TEXT_MAX);
	buf_text(&out, "");
	for (; blank.place < count; blank.place++) {
		if (blank.place)
			buf_char(&out, ',');
		for (const char *at = kind->text; *at; at++)
			if (*at == '@')
				put_blank(&out, &blank, *++at);
			else
				buf_char(&out, *at);
	}
	return out.data;
}

#include "common/chat/typing.h"

#include "common/pg/notify.h"

enum { USERNAME_MAX = 400 };

void typing_signal(struct tx *tx, int64_t conversation, int64_t person,
    const char *username, bool starts)
{
	struct buf text;
	struct json_out out = { .buf = &text };

	buf_init(&text, tx_arena(tx), EPHEMERAL_MAX);
	json_open(&out, NULL);
	json_put_text(&out, "kind", starts ? "dm_typing" : "dm_typing_stop");
	json_put_id(&out, "conversation", conversation);
	json_put_id(&out, "user", person);
	if (starts)
		json_put_text(&out, "username",
		    strlen(username) <= USERNAME_MAX ? username : "");
	json_close(&out);
	signal_ephemeral(tx, conversation, person, text.data);
}

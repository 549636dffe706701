#include "tests/lib/test_forged.h"

#include "common/base/clock.h"

static const char *const payload =
    "\"participants\":[{%1$s},{%2$s}],"
    "\"message\":{%1$s,\"content\":\"forged\",\"createdAt\":%6$lld,"
    "\"editedAt\":%6$lld},"
    "\"reaction\":{\"messageId\":\"%3$s\",\"messageHomeInstance\":\"%4$s\","
    "\"userId\":\"1\",%1$s,\"emoji\":\"x\",\"createdAt\":%6$lld},"
    "\"membership\":{\"user\":{%2$s},\"addedBy\":{%1$s},"
    "\"removedBy\":{%1$s},\"reason\":\"kick\"},"
    "\"group\":{\"owner\":{%1$s},\"members\":[{%1$s},{%2$s}]},"
    "\"ownership\":{\"newOwner\":{%2$s},\"previousOwner\":{%1$s}},"
    "\"friendship\":{\"from\":{%1$s},\"to\":{%7$s},\"status\":\"accepted\","
    "\"createdAt\":%6$lld},"
    "\"readState\":{\"user\":{%1$s},\"messageRef\":{\"sourceInstance\":"
    "\"%4$s\",\"sourceMessageId\":\"%3$s\"}},"
    "\"typing\":{%1$s,\"username\":\"x\"},"
    "\"profileUpdate\":{%1$s,\"profileUpdatedAt\":%6$lld,\"displayName\":"
    "\"forged\",\"avatar\":null,\"banner\":null,\"accentColor\":null,"
    "\"avatarColor\":null,\"bio\":null},"
    "\"metadata\":{\"name\":\"forged\",\"actor\":{%1$s}},"
    "\"attachmentId\":\"1\",\"sourceFilename\":\"a.png\","
    "\"rejectionReason\":\"size_limit_exceeded\",\"rejectionLimit\":1,"
    "\"affectedUserIds\":[\"1\"],\"federatedId\":\"%5$s\"";

const char *forged_event(struct arena *arena, const struct event_type *type,
    const struct forgery *forgery)
{
	long long now = clock_wall_ms();
	struct buf text;

	buf_init(&text, arena, 1 << 16);
	buf_printf(&text,
	    "{\"eventType\":\"%s\",\"contextType\":\"%s\",\"messageId\":"
	    "\"%s\",\"encryptionVersion\":0,\"timestamp\":%lld,",
	    type->name, type->context, forgery->about, now);
	buf_printf(&text, payload, forgery->who, forgery->whom, forgery->about,
	    forgery->about_instance, forgery->place, now, forgery->friend);
	buf_char(&text, '}');
	return text.data;
}

bool forged_names_nobody(const struct event_type *type)
{
	static const char *const names[] = { "delete", "file_rejected" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(type->name, names[i]) == 0)
			return true;
	return false;
}

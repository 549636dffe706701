#include "outboxd/reason.h"

struct reason {
	const char *word; /* a * at the end stands for anything */
	enum reason_class class;
};

/* clang-format off */
static const struct reason reasons[] = {
	{ "duplicate",              REASON_THERE        },
	{ "channel_not_found",      REASON_CONVERSATION },
	{ "unknown_message",        REASON_MESSAGE      },
	{ "message_not_found",      REASON_MESSAGE      },
	{ "processing_error",       REASON_ENTITY       },
	{ "author_not_found",       REASON_ENTITY       },
	/* What entitles may be on its way from another node. */
	{ "unauthorized_source",    REASON_ENTITY       },
	{ "sender_not_found",       REASON_ENTITY       },
	{ "attribution_mismatch",   REASON_NEVER        },
	{ "unknown_event_type",     REASON_NEVER        },
	{ "recipient_not_found",    REASON_NEVER        },
	{ "no_recipient",           REASON_NEVER        },
	{ "participant_not_found",  REASON_NEVER        },
	{ "user_not_found",         REASON_NEVER        },
	{ "attachment_not_found",   REASON_NEVER        },
	{ "self_target_invalid",    REASON_NEVER        },
	{ "max_members_exceeded",   REASON_NEVER        },
	{ "missing_*",              REASON_NEVER        },
	{ "invalid_*",              REASON_NEVER        },
};

/* What is gone already needs no deleting. */
static const char *const removals[] = { "delete", "reaction_remove" };
/* clang-format on */

static bool word_matches(const char *pattern, const char *word)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] == '*')
		return strncmp(pattern, word, len - 1) == 0;
	return strcmp(pattern, word) == 0;
}

static bool removes(const char *event_type)
{
	for (size_t i = 0; i < COUNT(removals); i++)
		if (strcmp(removals[i], event_type) == 0)
			return true;
	return false;
}

enum reason_class reason_class(const char *event_type, const char *word)
{
	for (size_t i = 0; i < COUNT(reasons); i++) {
		if (!word_matches(reasons[i].word, word))
			continue;
		if (reasons[i].class == REASON_MESSAGE && removes(event_type))
			return REASON_THERE;
		return reasons[i].class;
	}
	return REASON_ENTITY;
}

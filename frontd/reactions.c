#include "common/chat/reaction.h"
#include "common/federation/outbox_reaction.h"
#include "frontd/request.h"

enum { BODY_MAX = 1024 };

/* The word of the path, about a message of the caller's conversations. */
static bool word_read(
    struct request *req, struct reaction_word *word, struct err *err)
{
	struct message message;

	*word = (struct reaction_word){
		.message = path_id(req, "id"),
		.person = req->user.id,
		.emoji = path_text(req, "emoji"),
	};
	if (!emoji_is_usable(word->emoji))
		return err_set(err, ERR_INVALID,
		    "emoji must be 1 to %d characters without white space",
		    EMOJI_MAX);
	if (!reaction_message(
		req->tx, word->message, word->person, &message, err))
		return false;
	word->conversation = message.dm_channel_id;
	return strcmp(message.type, "user") == 0 ||
	    err_set(err, ERR_INVALID, "System messages take no reactions");
}

static bool outcome_check(const struct reaction_word *word, struct err *err)
{
	switch (word->outcome) {
	case REACTION_STAYS:
	case REACTION_CHANGED:
		break;
	case REACTION_NO_MESSAGE:
		return err_set(err, ERR_ABSENT, "Message not found");
	case REACTION_TOO_MANY:
		return err_set(err, ERR_INVALID,
		    "At most %d reactions to a message", REACTIONS_EACH_MAX);
	}
	return true;
}

static bool reply_reaction(
    struct request *req, const struct reaction_word *word)
{
	const struct reaction reaction = {
		.id = word->id,
		.dm_message_id = word->message,
		.user_id = word->person,
		.emoji = word->emoji,
		.created_at = word->created_at,
	};

	return reply_shape(req, word->outcome == REACTION_CHANGED ? 201 : 200,
	    reaction_shape, &reaction);
}

/* PUT /api/dm/messages/:id/reactions/:emoji */
static bool reaction_put(struct request *req, struct err *err)
{
	struct reaction_word word;

	return word_read(req, &word, err) &&
	    reactions_add(req->tx, &word, 1, err) &&
	    outcome_check(&word, err) &&
	    outbox_add_reaction(
		req->tx, req->node, "reaction_add", &word, NULL, err) &&
	    reply_reaction(req, &word);
}

/* DELETE /api/dm/messages/:id/reactions/:emoji */
static bool reaction_delete(struct request *req, struct err *err)
{
	struct reaction_word word;

	return word_read(req, &word, err) &&
	    reactions_remove(req->tx, &word, 1, err) &&
	    outcome_check(&word, err) &&
	    outbox_add_reaction(
		req->tx, req->node, "reaction_remove", &word, NULL, err) &&
	    reply_success(req);
}

/* clang-format off */
const struct route reaction_routes[] = {
	{ "PUT",    "/api/dm/messages/:id/reactions/:emoji", USER, BODY_MAX, 0, 0, reaction_put },
	{ "DELETE", "/api/dm/messages/:id/reactions/:emoji", USER, BODY_MAX, 0, 0, reaction_delete },
	{ .method = NULL }
};
/* clang-format on */

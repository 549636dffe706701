#include <math.h>

#include "common/base/log.h"
#include "common/chat/attachment.h"
#include "common/federation/event_message.h"

enum {
	PARTICIPANTS_MAX = 64,
	NAME_TEXT_MAX = 255,
	URL_TEXT_MAX = 2048,
	PROFILE_TEXT_MAX = 2048
};

/* ---- the people it names ---- */

static bool participants_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *list = json_member(event->value, "participants");
	size_t count = json_type(list) == JSON_ARRAY ? json_count(list) : 0;

	/* One: the last of a group, who writes to an account of his own. */
	if (count < 1 || count > PARTICIPANTS_MAX)
		return err_refuse(err, ERR_INVALID, "missing_participants",
		    "%zu participants", count);
	event->people =
	    arena_array(batch->arena, count, sizeof(*event->people));
	event->people_count = count;
	for (size_t i = 0; i < count; i++)
		if (!mention_read(
			batch, json_element(list, i), &event->people[i]))
			return err_refuse(err, ERR_INVALID,
			    "missing_participants", "participant %zu is nobody",
			    i);
	return true;
}

/* ---- its files ---- */

static double measure(struct json_in *in, const char *name)
{
	double number = json_real_opt(in, name, NAN);

	return number >= 0 && number <= INT32_MAX ? number : NAN;
}

static bool file_read(const struct relay_batch *batch, const struct json *value,
    struct attachment *file)
{
	struct err err = { 0 };
	struct json_in in = json_from(batch->arena, value, &err);

	file->source_url = json_text(&in, "sourceUrl", URL_TEXT_MAX);
	file->source_id = json_text_opt(&in, "id", HOME_USER_ID_MAX);
	file->original_name = json_text(&in, "originalName", NAME_TEXT_MAX);
	file->mimetype = json_text(&in, "mimetype", NAME_TEXT_MAX);
	file->size = json_int(&in, "size", 0, INT64_C(1) << 53);
	file->width = measure(&in, "width");
	file->height = measure(&in, "height");
	file->duration = measure(&in, "duration");
	return json_done(&in) &&
	    url_has_host(batch->arena, file->source_url, batch->source.host);
}

/* A file that is not the peer's own is left out; its message counts. */
static void files_read(const struct relay_batch *batch,
    struct relay_event *event, const struct json *message)
{
	const struct json *list = json_member(message, "attachments");
	size_t count = json_type(list) == JSON_ARRAY ? json_count(list) : 0;

	if (count > MESSAGE_FILES_MAX)
		count = MESSAGE_FILES_MAX;
	event->files = arena_array(batch->arena, count, sizeof(*event->files));
	event->file_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct attachment *file = &event->files[event->file_count];

		if (file_read(batch, json_element(list, i), file))
			event->file_count++;
		else
			log_warn("relay.file_skipped",
			    F("peer", v_text(batch->source.text)),
			    F("entry", v_text(event->message_id)));
	}
}

/* ---- the message ---- */

static int64_t time_or_none(const struct json *message, const char *name)
{
	int64_t ms;

	return json_whole(json_member(message, name), &ms) && ms > 0 ? ms : 0;
}

static bool content_read(const struct relay_batch *batch,
    struct relay_event *event, const struct json *message, struct err *err)
{
	const struct json *content = json_member(message, "content");
	enum json_type type = json_type(content);

	if (type != JSON_TEXT && type != JSON_NULL && type != JSON_ABSENT)
		return err_refuse(err, ERR_INVALID, "processing_error",
		    "the content is no text");
	if (type != JSON_TEXT)
		return true;
	event->content = json_string(content);
	if (!event->content)
		return err_set(err, ERR_INVALID, "the content cannot be kept");
	event->content = arena_text(batch->arena, event->content);
	if (json_units(event->content) > MESSAGE_CONTENT_MAX)
		return err_set(err, ERR_INVALID, "the content is too long");
	return true;
}

/* The sender's id is where the message was born. */
static bool message_id_check(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	if (!event->message_id || !*event->message_id ||
	    json_units(event->message_id) > HOME_USER_ID_MAX)
		return err_set(err, ERR_INVALID, "no usable message id");
	event->about_host = batch->source.host;
	event->about_id = event->message_id;
	return true;
}

static bool message_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *message = json_member(event->value, "message");
	struct err ignored = { 0 };
	struct json_in in;
	const char *author;
	const char *instance;

	if (json_type(message) != JSON_OBJECT)
		return err_set(err, ERR_INVALID, "no message");
	in = json_from(batch->arena, message, &ignored);
	instance = json_text(&in, "homeInstance", PROFILE_TEXT_MAX);
	if (!event_attribute(batch, event, NULL, instance, err))
		return false;
	author = json_text(&in, "homeUserId", HOME_USER_ID_MAX);
	if (!author)
		return err_set(err, ERR_INVALID, "no author");
	event->actor.home_user_id = author;
	event->has_message = true;
	event->created_at = time_or_none(message, "createdAt");
	event->edited_at = time_or_none(message, "editedAt");
	if (event->edited_at)
		event->edited_at = time_capped(event->edited_at);
	files_read(batch, event, message);
	return content_read(batch, event, message, err);
}

/* Its name where it was written, by the home of its author. */
static void written_read(
    const struct relay_batch *batch, struct relay_event *event)
{
	const struct json *written =
	    json_member(json_member(event->value, "message"), "writtenAt");
	const char *id = json_string(json_member(written, "messageId"));
	const char *instance =
	    json_string(json_member(written, "homeInstance"));
	const char *host = instance ? batch_host(batch, instance) : NULL;

	if (event->is_homeward || !host || host == batch->source.host ||
	    host == batch->node->origin.host || !id || !*id ||
	    json_units(id) > HOME_USER_ID_MAX)
		return;
	event->written_host = host;
	event->written_id = arena_text(batch->arena, id);
}

static bool federated_id_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *id = json_member(event->value, "federatedId");

	if (!id || json_type(id) == JSON_NULL)
		return true;
	event->federated_id = json_string(id);
	if (!event->federated_id || !*event->federated_id ||
	    json_units(event->federated_id) > HOME_USER_ID_MAX)
		return err_refuse(err, ERR_INVALID, "channel_not_found",
		    "no usable federated id");
	event->federated_id = arena_text(batch->arena, event->federated_id);
	return true;
}

/*
 * A message that nobody named is known by what it says, so that repeating it
 * does not double it.
 */
static void name_unnamed(
    const struct relay_batch *batch, struct relay_event *event)
{
	char hash[FEDERATED_ID_SIZE];

	if (event->id && json_type(event->id) != JSON_NULL)
		return;
	federated_id_of_pair(arena_printf(batch->arena, "%s %" PRId64,
				 event->actor.home_user_id, event->created_at),
	    event->content ? event->content : "", hash);
	event->message_id = arena_printf(batch->arena, "unnamed:%s", hash);
}

bool create_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	if (!message_read(batch, event, err) ||
	    !participants_read(batch, event, err) ||
	    !federated_id_read(batch, event, err))
		return false;
	name_unnamed(batch, event);
	if (!message_id_check(batch, event, err))
		return false;
	/* A group's message that lost its group must not become a pair's. */
	if (!event->federated_id && event->people_count != 2)
		return err_refuse(err, ERR_INVALID, "missing_participants",
		    "%zu participants and no federated id",
		    event->people_count);
	written_read(batch, event);
	event->created_at = time_capped(event->created_at);
	event->place = event->federated_id ? PLACE_GROUP : PLACE_PAIR;
	return true;
}

/* A change may name the message by our id, if it was written here. */
static bool change_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	event->about_ours = true;
	return message_id_check(batch, event, err);
}

bool update_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	if (!change_read(batch, event, err))
		return false;
	/* Without a payload it is an edit that changes nothing. */
	if (!json_member(event->value, "message"))
		return true;
	return message_read(batch, event, err);
}

bool delete_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	return change_read(batch, event, err);
}

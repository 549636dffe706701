#include "common/federation/event_profile.h"

#include "common/chat/profile.h"
#include "common/chat/profile_text.h"

enum { TEXT_MAX = 64 * 1024 };

static bool refuse_payload(struct err *err, const char *why)
{
	return err_refuse(
	    err, ERR_INVALID, "missing_profile_update_payload", "%s", why);
}

/* Cut to what we keep; what we would not take from our own people is none. */
static void fields_read(const struct relay_batch *batch, struct json_in *in,
    struct profile_said *said)
{
	struct arena *arena = batch->arena;
	const char *origin = batch->source.text;
	const char *username = json_text_opt(in, "username", TEXT_MAX);
	const char *name = json_text_opt(in, "displayName", TEXT_MAX);
	const char *accent = json_text_opt(in, "accentColor", TEXT_MAX);
	const char *color = json_text_opt(in, "avatarColor", TEXT_MAX);

	said->display_name =
	    name_neutral(arena, name && *name ? name : username);
	said->avatar =
	    asset_url(arena, json_text_opt(in, "avatar", TEXT_MAX), origin);
	said->banner =
	    asset_url(arena, json_text_opt(in, "banner", TEXT_MAX), origin);
	said->accent_color = accent && is_accent_color(accent) ? accent : NULL;
	said->avatar_color = color && is_avatar_color(color) ? color : NULL;
	said->bio =
	    text_cut(arena, json_text_opt(in, "bio", TEXT_MAX), BIO_MAX);
}

bool profile_update_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *value = json_member(event->value, "profileUpdate");
	const char *instance = json_string(json_member(value, "homeInstance"));
	struct profile_said *said =
	    ARENA_NEW(batch->arena, struct profile_said);
	struct err ignored = { 0 };
	struct json_in in;
	const char *person;

	if (json_type(value) != JSON_OBJECT)
		return refuse_payload(err, "no profile");
	if (!event_attribute(batch, event, NULL, instance, err))
		return false;
	if (event->is_homeward)
		return err_set(err, ERR_ATTRIBUTION,
		    "our people's profiles are made here");
	in = json_from(batch->arena, value, &ignored);
	person = json_text(&in, "homeUserId", HOME_USER_ID_MAX);
	said->updated_at = json_time(&in, "profileUpdatedAt");
	fields_read(batch, &in, said);
	if (!json_done(&in))
		return refuse_payload(err, ignored.text);
	said->updated_at = time_of_peer(said->updated_at);
	event->actor.home_user_id = person;
	event->detail = said;
	return true;
}

/* Of several about one person the newest counts. */
static size_t said_add(struct profile_said *all, size_t count,
    const struct profile_said *said, int64_t person)
{
	size_t at = 0;

	while (at < count && all[at].person != person)
		at++;
	if (at < count && all[at].updated_at >= said->updated_at)
		return count;
	all[at] = *said;
	all[at].person = person;
	return at < count ? count : count + 1;
}

bool profile_update_apply(struct relay_range *run, struct err *err)
{
	struct profile_said *said =
	    arena_array(tx_arena(run->tx), run->count, sizeof(*said));
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];
		const struct person *person = event->actor.person;

		if (event->state != EVENT_OPEN)
			continue;
		event_accept(event);
		if (person->id && !person->is_gone)
			count =
			    said_add(said, count, event->detail, person->id);
	}
	return profiles_replace(run->tx, said, count, err);
}

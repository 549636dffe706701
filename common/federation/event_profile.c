#include "common/federation/event_profile.h"

#include "common/chat/profile.h"
#include "common/chat/profile_text.h"
#include "common/federation/outbox_group.h"

enum {
	TEXT_MAX = 64 * 1024,
	PLACES_MAX = 20,
	PLACE_MAX = 255, /* of a name there */
	PLACES_JSON_MAX = 64 * 1024
};

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

/* ---- where else he has accounts ---- */

/* Of what nobody could tell anything nothing is kept. */
static bool place_put(const struct relay_batch *batch, struct json_out *out,
    const struct json *place)
{
	const char *said = json_string(json_member(place, "origin"));
	const char *name = json_string(json_member(place, "username"));
	struct origin origin;

	if (!said || !name || json_units(name) > PLACE_MAX ||
	    !origin_parse(batch->arena, said, &origin))
		return false;
	json_open(out, NULL);
	json_put_text(out, "origin", origin.text);
	json_put_text(out, "username", name);
	json_close(out);
	return true;
}

static const char *places_read(
    const struct relay_batch *batch, const struct json *list)
{
	size_t count = json_count(list);
	struct buf text;
	struct json_out out = { .buf = &text };
	size_t kept = 0;

	if (count == 0 || count > PLACES_MAX)
		return NULL;
	buf_init(&text, batch->arena, PLACES_JSON_MAX);
	json_open_list(&out, NULL);
	for (size_t i = 0; i < count; i++)
		kept += place_put(batch, &out, json_element(list, i));
	json_close_list(&out);
	return kept && buf_ok(&text) ? text.data : NULL;
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
	said->places =
	    places_read(batch, json_member(value, "replicatedInstances"));
	if (!json_done(&in))
		return refuse_payload(err, ignored.text);
	said->updated_at = time_of_peer(said->updated_at);
	event->actor.home_user_id = person;
	event->detail = said;
	return true;
}

/* Is there anything to change? Whoever has an account here may have said more
 * himself. */
static bool is_placed_anew(
    const struct person *person, const struct profile_said *said)
{
	return said->places ||
	    (person->is_stub && person->replicated_instances &&
		strcmp(person->replicated_instances, "[]") != 0);
}

/* The nodes that have become theirs get the groups of ours they are in. */
static bool arrivals_tell(
    struct relay_range *run, const struct rows *placed, struct err *err)
{
	const struct node *node = run->batch->node;
	const struct placed *all = placed->items;

	for (size_t i = 0; i < placed->count; i++) {
		struct targets fresh;

		targets_init_fresh(&fresh, tx_arena(run->tx), node,
		    all[i].before, all[i].after);
		if (fresh.count &&
		    !outbox_add_arrival(
			run->tx, node, all[i].person, &fresh, err))
			return false;
	}
	return true;
}

/* Of several about one person the newest counts. */
static size_t said_add(struct profile_said *all, size_t count,
    const struct profile_said *said, int64_t person)
{
	size_t at = 0;

	while (at < count && all[at].person != person)
		at++;
	if (at < count && all[at].updated_at > said->updated_at)
		return count;
	all[at] = *said;
	all[at].person = person;
	return at < count ? count : count + 1;
}

/* Where somebody has accounts is told because of a conversation; who else is
 * in it may tell us of him only later. */
static bool is_early(
    const struct person *person, const struct profile_said *said)
{
	return said->places && !person->id && !person->is_gone;
}

bool profile_update_apply(struct relay_range *run, struct err *err)
{
	struct profile_said *said =
	    arena_array(tx_arena(run->tx), run->count, sizeof(*said));
	bool placed_anew = false;
	struct rows placed;
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];
		const struct person *person = event->actor.person;

		if (event->state != EVENT_OPEN)
			continue;
		if (is_early(person, event->detail)) {
			event_deny(run->batch, event, ERR_BUSY, NULL,
			    "nobody has told of this person yet");
			continue;
		}
		event_accept(event);
		if (!person->id || person->is_gone)
			continue;
		count = said_add(said, count, event->detail, person->id);
		placed_anew |= is_placed_anew(person, event->detail);
	}
	if (!profiles_replace(run->tx, said, count, err))
		return false;
	return !placed_anew ||
	    (profiles_place(run->tx, said, count, &placed, err) &&
		arrivals_tell(run, &placed, err));
}

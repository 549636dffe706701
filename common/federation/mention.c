#include "common/federation/batch.h"

enum { PROFILE_TEXT_MAX = 2048 };

static bool profile_read(struct json_in *in, struct mention *who)
{
	struct json_in profile = json_object_opt(in, "profile");

	who->username = json_text_opt(&profile, "username", PROFILE_TEXT_MAX);
	who->display_name =
	    json_text_opt(&profile, "displayName", PROFILE_TEXT_MAX);
	who->avatar = json_text_opt(&profile, "avatar", PROFILE_TEXT_MAX);
	who->avatar_color =
	    json_text_opt(&profile, "avatarColor", PROFILE_TEXT_MAX);
	return json_done(&profile);
}

bool mention_read(const struct relay_batch *batch, const struct json *value,
    struct mention *who)
{
	struct err err = { 0 };
	struct json_in in = json_from(batch->arena, value, &err);
	const char *instance;

	who->home_user_id = json_text(&in, "homeUserId", HOME_USER_ID_MAX);
	instance = json_text(&in, "homeInstance", PROFILE_TEXT_MAX);
	if (!profile_read(&in, who) || !json_done(&in))
		return false;
	who->host = batch_host(batch, instance);
	return who->host != NULL;
}

#include "frontd/target.h"

#include "common/base/id.h"
#include "common/federation/person.h"

enum { INSTANCE_MAX = 512 };

/* Whoever is said to be at home on another port of our host is nobody. */
static bool is_elsewhere(const struct request *req, const char *host, int port)
{
	const struct origin *ours = &req->node->origin;

	return port && port != ours->port && strcmp(host, ours->host) == 0;
}

/* A person of another node, who may not be known here yet. */
static bool target_remote(struct request *req, const char *home_user_id,
    const char *instance, struct user *target, struct err *err)
{
	int port;
	struct person person = {
		.host = instance_host(req->arena, instance, &port),
		.home_user_id = home_user_id,
		.wanted = true,
	};

	if (!person.host || is_elsewhere(req, person.host, port))
		return err_set(err, ERR_INVALID, "Invalid home instance");
	if (!persons_find(req->tx, req->node, &person, 1, err) ||
	    !persons_make(req->tx, req->node, NULL, &person, 1, err))
		return false;
	if (!person.id || person.is_gone)
		return err_set(err, ERR_ABSENT, "User not found");
	return user_by_id(req->tx, person.id, target, err);
}

static bool target_local(
    struct request *req, int64_t id, struct user *target, struct err *err)
{
	if (!user_by_id(req->tx, id, target, err))
		return err->code == ERR_ABSENT
		    ? err_set(err, ERR_ABSENT, "User not found")
		    : false;
	if (target->is_deleted)
		return err_set(err, ERR_ABSENT, "User not found");
	return true;
}

bool target_of(struct request *req, struct json_in *in, struct user *target,
    struct err *err)
{
	int64_t id = json_id_opt(in, "userId");
	const char *home_user_id =
	    json_text_opt(in, "homeUserId", HOME_USER_ID_MAX);
	const char *instance = json_text_opt(in, "homeInstance", INSTANCE_MAX);

	if (!json_done(in))
		return false;
	if (home_user_id && *home_user_id && instance && *instance)
		return target_remote(req, home_user_id, instance, target, err);
	if (!id)
		return err_set(err, ERR_INVALID, "userId is required");
	return target_local(req, id, target, err);
}

bool target_read(struct request *req, struct user *target, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);

	return target_of(req, &in, target, err);
}

/* ---- names ---- */

static char *lower(char *text)
{
	for (char *p = text; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p + 'a' - 'A');
	return text;
}

/* As users.username has it: a bare name for our own people, else name@host in
 * the one spelling of the host. NULL: nobody is called that. */
static const char *name_normal(const struct request *req, const char *said)
{
	char *name = lower(arena_text(req->arena, said));
	char *at = strrchr(name, '@');
	const char *host;
	int port;

	if (!at)
		return name;
	host = instance_host(req->arena, at + 1, &port);
	if (!host || is_elsewhere(req, host, port))
		return NULL;
	*at = '\0';
	return strcmp(host, req->node->origin.host) == 0
	    ? name
	    : arena_printf(req->arena, "%s@%s", name, host);
}

bool target_by_name(
    struct request *req, const char *said, struct user *target, struct err *err)
{
	const char *name = name_normal(req, json_trim(req->arena, said));
	bool found = false;

	return (!name || user_by_name(req->tx, name, target, &found, err)) &&
	    (found || err_set(err, ERR_ABSENT, "User not found"));
}

/* ---- several at once ---- */

static bool named_read(struct request *req, const struct json *value,
    struct person *person, struct err *err)
{
	struct json_in in = json_from(req->arena, value, err);
	const char *id = json_text(&in, "id", HOME_USER_ID_MAX);
	const char *home_user_id =
	    json_text_opt(&in, "homeUserId", HOME_USER_ID_MAX);
	const char *instance = json_text_opt(&in, "homeInstance", INSTANCE_MAX);
	int port = 0;

	if (!json_done(&in))
		return false;
	*person = (struct person){ .host = req->node->origin.host,
		.home_user_id = id };
	if (!home_user_id || !*home_user_id || !instance || !*instance) {
		person->host = NULL;
		return true;
	}
	person->host = instance_host(req->arena, instance, &port);
	person->home_user_id = home_user_id;
	if (!person->host || is_elsewhere(req, person->host, port))
		return err_set(err, ERR_INVALID, "Invalid home instance");
	return true;
}

/* Ids of this node: of its own people, and of those it has rows of. */
static bool find_local(struct request *req, const struct person *people,
    int64_t *ids, size_t count, struct err *err)
{
	struct rows users;
	const struct user *all;

	for (size_t i = 0; i < count; i++)
		if (!people[i].host)
			ids[i] = id_parse(people[i].home_user_id);
	if (!users_by_ids(req->tx, ids, count, &users, err))
		return false;
	all = users.items;
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t j = 0; j < users.count; j++)
			found |= all[j].id == ids[i] && !all[j].is_deleted;
		if (!found)
			return err_set(err, ERR_ABSENT, "User not found");
	}
	return true;
}

static bool find_all(struct request *req, struct person *people, int64_t *ids,
    size_t count, struct err *err)
{
	struct person *remote = arena_array(req->arena, count, sizeof(*remote));
	size_t *places = arena_array(req->arena, count, sizeof(*places));
	size_t remotes = 0;

	for (size_t i = 0; i < count; i++) {
		if (!people[i].host)
			continue;
		places[remotes] = i;
		remote[remotes++] = people[i];
	}
	if (!persons_find(req->tx, req->node, remote, remotes, err))
		return false;
	for (size_t i = 0; i < remotes; i++)
		ids[places[i]] = remote[i].is_gone ? 0 : remote[i].id;
	return find_local(req, people, ids, count, err);
}

bool targets_find(
    struct request *req, const struct json *list, int64_t *ids, struct err *err)
{
	size_t count = json_count(list);
	struct person *people = arena_array(req->arena, count, sizeof(*people));

	for (size_t i = 0; i < count; i++)
		if (!named_read(req, json_element(list, i), &people[i], err))
			return false;
	return find_all(req, people, ids, count, err);
}

/*
 * streaming -- limits of calls' video, which the node only keeps for its
 * clients (client-api, tag "settings").
 *
 * Lists are kept as text with commas; members of the matrix that are no pair
 * of the two lists of values are left out.
 */
#include "frontd/request.h"
#include "frontd/streaming.sql.h"

enum {
	BODY_MAX = 1 << 20,
	VALUES_MAX = 16,
	WORD_MAX = 16,
	TEXT_MAX = 1024,
	KBPS_MAX = 1000000
};

struct limits {
	int64_t max_bitrate_kbps;
	int64_t min_bitrate_kbps;
	int64_t bitrate_step_kbps;
	const char *allowed_resolutions;
	const char *allowed_framerates;
	int64_t max_resolution;
	int64_t max_framerate;
	bool discovery_enabled;
	const char *bitrate_matrix_overrides; /* JSON or NULL */
	bool allow_custom_bitrate;
};

/* clang-format off */
static const struct shape limits_shape[] = {
	SHAPE(INT,  struct limits, max_bitrate_kbps, NULL),
	SHAPE(INT,  struct limits, min_bitrate_kbps, NULL),
	SHAPE(INT,  struct limits, bitrate_step_kbps, NULL),
	SHAPE(TEXT, struct limits, allowed_resolutions, NULL),
	SHAPE(TEXT, struct limits, allowed_framerates, NULL),
	SHAPE(INT,  struct limits, max_resolution, NULL),
	SHAPE(INT,  struct limits, max_framerate, NULL),
	SHAPE(BOOL, struct limits, discovery_enabled, NULL),
	SHAPE(TEXT, struct limits, bitrate_matrix_overrides, NULL),
	SHAPE(BOOL, struct limits, allow_custom_bitrate, NULL),
	SHAPE_END(struct limits),
};

static const char *const resolutions[] = {
	"540", "720", "1080", "1440", "2160", "native", NULL };
static const char *const framerates[] = {
	"30", "45", "60", "75", "90", "120", NULL };
/* clang-format on */

/* ---- GET ---- */

/* "540,native" as [540,"native"]. */
static void put_list(struct json_out *out, const char *name, const char *text)
{
	json_open_list(out, name);
	while (*text) {
		size_t len = strcspn(text, ",");

		if (*text >= '0' && *text <= '9')
			json_put_raw(out, NULL, (struct bytes){ text, len });
		else
			json_put_text(out, NULL, "native");
		text += len + (text[len] == ',');
	}
	json_close_list(out);
}

static bool reply_limits(struct request *req, const struct limits *l)
{
	struct json_out out = { .buf = &req->reply };
	const char *matrix = l->bitrate_matrix_overrides;

	reply_json(req, 200, "");
	json_open(&out, NULL);
	json_put_int(&out, "maxBitrateKbps", l->max_bitrate_kbps);
	json_put_int(&out, "minBitrateKbps", l->min_bitrate_kbps);
	json_put_int(&out, "bitrateStepKbps", l->bitrate_step_kbps);
	put_list(&out, "allowedResolutions", l->allowed_resolutions);
	put_list(&out, "allowedFramerates", l->allowed_framerates);
	json_put_int(&out, "maxResolution", l->max_resolution);
	json_put_int(&out, "maxFramerate", l->max_framerate);
	json_put_bool(&out, "discoveryEnabled", l->discovery_enabled);
	if (matrix)
		json_put_raw(&out, "bitrateMatrixOverrides",
		    (struct bytes){ matrix, strlen(matrix) });
	else
		json_put_null(&out, "bitrateMatrixOverrides");
	json_put_bool(&out, "allowCustomBitrate", l->allow_custom_bitrate);
	json_close(&out);
	return true;
}

/* GET /api/settings/streaming */
static bool streaming_get(struct request *req, struct err *err)
{
	struct limits limits;

	return sql_one(
		   req->tx, &SQL_streaming_read, limits_shape, &limits, err) &&
	    reply_limits(req, &limits);
}

/* ---- PATCH ---- */

static int64_t read_kbps(struct json_in *in, const char *name, int64_t min,
    int64_t max, int64_t known)
{
	double kbps = json_real_opt(in, name, (double)known);

	if (kbps >= (double)min && kbps <= (double)max)
		return (int64_t)(kbps + 0.5);
	json_fail(in, name, "is out of range");
	return known;
}

/* The value as one of these words; NULL: it is none. */
static const char *word_of(
    struct arena *arena, const struct json *value, const char *const *words)
{
	const char *text = json_string(value);
	int64_t number;

	if (!text && json_whole(value, &number))
		text = arena_printf(arena, "%" PRId64, number);
	for (size_t i = 0; text && words[i]; i++)
		if (strcmp(words[i], text) == 0)
			return words[i];
	return NULL;
}

static const char *read_list(struct json_in *in, const char *name,
    const char *const *words, const char *known)
{
	const struct json *list = json_list_opt(in, name, VALUES_MAX);
	struct buf text;

	if (!list || in->failed)
		return known;
	if (json_count(list) == 0)
		json_fail(in, name, "is empty");
	buf_init(&text, in->arena, TEXT_MAX);
	for (size_t i = 0; i < json_count(list) && !in->failed; i++) {
		const char *word =
		    word_of(in->arena, json_element(list, i), words);

		if (word)
			buf_printf(&text, "%s%s", i ? "," : "", word);
		else
			json_fail(in, name, "holds a value that is not known");
	}
	return in->failed ? known : text.data;
}

static int64_t read_one(struct json_in *in, const char *name,
    const char *const *words, int64_t known)
{
	int64_t number = json_int_opt(in, name, 1, KBPS_MAX, known);

	for (size_t i = 0; words[i]; i++)
		if (number == strtoll(words[i], NULL, 10))
			return number;
	if (number != known)
		json_fail(in, name, "is not known");
	return known;
}

static void read_cell(struct json_in *in, struct json_out *out,
    const struct json *matrix, const char *name)
{
	const struct json *value = json_member(matrix, name);
	double kbps;

	if (!value)
		return;
	if (json_number(value, &kbps) && kbps > 0 && kbps <= KBPS_MAX)
		json_put_real(out, name, kbps);
	else
		json_fail(in, "bitrateMatrixOverrides", "is out of range");
}

static const char *read_matrix(struct json_in *in, const char *known)
{
	static const char name[] = "bitrateMatrixOverrides";
	const struct json *value =
	    in->failed ? NULL : json_member(in->value, name);
	struct buf text;
	struct json_out out = { .buf = &text };

	if (!value)
		return known;
	if (json_type(value) == JSON_NULL)
		return NULL;
	if (json_type(value) != JSON_OBJECT)
		json_fail(in, name, "must be an object");
	buf_init(&text, in->arena, BODY_MAX);
	json_open(&out, NULL);
	for (size_t i = 0; resolutions[i]; i++)
		for (size_t j = 0; framerates[j]; j++)
			read_cell(in, &out, value,
			    arena_printf(in->arena, "%s_%s", resolutions[i],
				framerates[j]));
	json_close(&out);
	return text.data;
}

static bool read_changes(struct request *req, struct limits *l, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);

	l->max_bitrate_kbps = read_kbps(
	    &in, "maxBitrateKbps", 500, KBPS_MAX, l->max_bitrate_kbps);
	l->min_bitrate_kbps = read_kbps(
	    &in, "minBitrateKbps", 100, KBPS_MAX, l->min_bitrate_kbps);
	l->bitrate_step_kbps =
	    read_kbps(&in, "bitrateStepKbps", 50, 5000, l->bitrate_step_kbps);
	l->allowed_resolutions = read_list(
	    &in, "allowedResolutions", resolutions, l->allowed_resolutions);
	l->allowed_framerates = read_list(
	    &in, "allowedFramerates", framerates, l->allowed_framerates);
	l->max_resolution =
	    read_one(&in, "maxResolution", resolutions, l->max_resolution);
	l->max_framerate =
	    read_one(&in, "maxFramerate", framerates, l->max_framerate);
	l->discovery_enabled =
	    json_bool_opt(&in, "discoveryEnabled", l->discovery_enabled);
	l->bitrate_matrix_overrides =
	    read_matrix(&in, l->bitrate_matrix_overrides);
	l->allow_custom_bitrate =
	    json_bool_opt(&in, "allowCustomBitrate", l->allow_custom_bitrate);
	if (l->min_bitrate_kbps >= l->max_bitrate_kbps)
		json_fail(&in, "minBitrateKbps", "must be below the maximum");
	return json_done(&in);
}

static bool write_limits(struct tx *tx, const struct limits *l, struct err *err)
{
	return sql_none(tx, &SQL_streaming_write, err,
	    v_int(l->max_bitrate_kbps), v_int(l->min_bitrate_kbps),
	    v_int(l->bitrate_step_kbps), v_text(l->allowed_resolutions),
	    v_text(l->allowed_framerates), v_int(l->max_resolution),
	    v_int(l->max_framerate), v_bool(l->discovery_enabled),
	    v_text(l->bitrate_matrix_overrides),
	    v_bool(l->allow_custom_bitrate));
}

/* PATCH /api/settings/streaming */
static bool streaming_patch(struct request *req, struct err *err)
{
	struct limits limits;

	if (!sql_one(
		req->tx, &SQL_streaming_lock, limits_shape, &limits, err) ||
	    !read_changes(req, &limits, err))
		return false;
	log_info("streaming.changed", F("user", v_id(req->user.id)));
	return write_limits(req->tx, &limits, err) &&
	    sql_none(req->tx, &SQL_streaming_audit, err,
		v_text(req->user.username)) &&
	    reply_limits(req, &limits);
}

/* clang-format off */
const struct route streaming_routes[] = {
	{ "GET",   "/api/settings/streaming", USER,  0,        0, 0, streaming_get },
	{ "PATCH", "/api/settings/streaming", ADMIN, BODY_MAX, 0, 0, streaming_patch },
	{ .method = NULL },
};
/* clang-format on */

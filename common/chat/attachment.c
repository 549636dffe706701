#include <math.h>

#include "common/chat/attachment.h"

#include "common/pg/notify.h"

#include "common/chat/attachment.sql.h"

/* clang-format off */
const struct shape attachment_shape[] = {
	SHAPE(ID,   struct attachment, id, "id"),
	SHAPE(ID,   struct attachment, dm_message_id, "messageId"),
	SHAPE(TEXT, struct attachment, filename, "filename"),
	SHAPE(TEXT, struct attachment, original_name, "originalName"),
	SHAPE(TEXT, struct attachment, mimetype, "mimetype"),
	SHAPE(INT,  struct attachment, size, "size"),
	SHAPE(TEXT, struct attachment, thumbnail_filename, "thumbnailFilename"),
	SHAPE(REAL, struct attachment, width, "width"),
	SHAPE(REAL, struct attachment, height, "height"),
	SHAPE(REAL, struct attachment, duration, "duration"),
	SHAPE(TEXT, struct attachment, federation_status, "federationStatus"),
	SHAPE(TEXT, struct attachment, federation_meta, "federationMeta"),
	SHAPE(TIME, struct attachment, created_at, "createdAt"),
	SHAPE(TEXT, struct attachment, source_url, NULL),
	SHAPE(TEXT, struct attachment, source_id, NULL),
	SHAPE_END(struct attachment),
};
/* clang-format on */

bool attachments_of(struct tx *tx, const int64_t *messages, size_t count,
    struct rows *files, struct err *err)
{
	if (count == 0) {
		*files = (struct rows){ 0 };
		return true;
	}
	return sql_many(tx, &SQL_attachments_of, attachment_shape, files, err,
	    v_ids(messages, count));
}

bool attachments_use(struct tx *tx, const int64_t *ids, size_t count,
    int64_t uploader, int64_t message, struct err *err)
{
	int64_t used;

	if (count == 0)
		return true;
	if (!sql_count(tx, &SQL_attachments_use, &used, err, v_ids(ids, count),
		v_id(uploader), v_id(message)))
		return false;
	return used == (int64_t)count ||
	    err_set(err, ERR_INVALID, "Invalid attachment");
}

/* The columns of the rows to come. */
struct columns {
	int64_t *messages, *sizes;
	const char **urls, **names, **types, **ids;
	const char **widths, **heights, **durations;
};

static const char *measure(struct arena *arena, int digits, double number)
{
	return isfinite(number) ? arena_printf(arena, "%.*f", digits, number)
				: NULL;
}

static struct columns columns_of(
    struct arena *arena, const struct attachment *files, size_t count)
{
	struct columns c;

	c.messages = arena_array(arena, count, sizeof(int64_t));
	c.sizes = arena_array(arena, count, sizeof(int64_t));
	c.widths = arena_array(arena, count, sizeof(char *));
	c.heights = arena_array(arena, count, sizeof(char *));
	c.urls = arena_array(arena, count, sizeof(char *));
	c.names = arena_array(arena, count, sizeof(char *));
	c.types = arena_array(arena, count, sizeof(char *));
	c.durations = arena_array(arena, count, sizeof(char *));
	c.ids = arena_array(arena, count, sizeof(char *));
	for (size_t i = 0; i < count; i++) {
		c.messages[i] = files[i].dm_message_id;
		c.sizes[i] = files[i].size;
		c.urls[i] = files[i].source_url;
		c.names[i] = files[i].original_name;
		c.types[i] = files[i].mimetype;
		c.ids[i] = files[i].source_id;
		c.widths[i] = measure(arena, 0, files[i].width);
		c.heights[i] = measure(arena, 0, files[i].height);
		c.durations[i] = measure(arena, 3, files[i].duration);
	}
	return c;
}

bool attachments_expect(struct tx *tx, int64_t peer, const char *peer_origin,
    const struct attachment *files, size_t count, struct err *err)
{
	struct columns c = columns_of(tx_arena(tx), files, count);

	if (count == 0)
		return true;
	if (!sql_none(tx, &SQL_attachments_expect, err, v_id(peer),
		v_text(peer_origin), v_ids(c.messages, count),
		v_texts(c.urls, count), v_texts(c.names, count),
		v_texts(c.types, count), v_ints(c.sizes, count),
		v_texts(c.widths, count), v_texts(c.heights, count),
		v_texts(c.durations, count), v_texts(c.ids, count)))
		return false;
	signal_files(tx);
	return true;
}

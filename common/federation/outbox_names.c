#include "common/federation/outbox_names.h"

#include "common/federation/outbox_names.sql.h"

struct row {
	const char *origin;
	const char *id;
	const char *other_host;
	const char *other_origin;
	const char *other_id;
	bool to_all;
};

/* clang-format off */
static const struct shape row_shape[] = {
	SHAPE(TEXT, struct row, origin, NULL),
	SHAPE(TEXT, struct row, id, NULL),
	SHAPE(TEXT, struct row, other_host, NULL),
	SHAPE(TEXT, struct row, other_origin, NULL),
	SHAPE(TEXT, struct row, other_id, NULL),
	SHAPE(BOOL, struct row, to_all, NULL),
	SHAPE_END(struct row),
};
/* clang-format on */

bool outbox_names(struct tx *tx, const struct node *node, int64_t message,
    struct message_names *names, bool *found, struct err *err)
{
	struct row row = { 0 };

	if (!sql_opt(tx, &SQL_outbox_names, row_shape, &row, found, err,
		v_id(message), v_text(node->origin.text)))
		return false;
	*names = (struct message_names){
		.usual = { row.origin, row.id },
		.other = { row.other_origin, row.other_id },
		.other_host = row.other_host,
		.to_all = row.to_all,
	};
	return true;
}

void names_part(const struct message_names *names, const struct node *node,
    const struct targets *all, struct targets *usual, struct targets *other)
{
	const char *host = names->other_host;

	targets_init(usual, all->arena, node, all->except ? all->except : host);
	targets_init(other, all->arena, node, all->except);
	for (size_t i = 0; i < all->count; i++)
		targets_add(
		    host && !strcmp(all->hosts[i], host) ? other : usual,
		    all->hosts[i]);
}

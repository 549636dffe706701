#include "common/base/id.h"

int64_t id_parse(const char *text)
{
	int64_t id = 0;

	if (!text || text[0] < '1' || text[0] > '9')
		return 0;
	for (; *text; text++) {
		int digit = *text - '0';

		if (digit < 0 || digit > 9 ||
		    __builtin_mul_overflow(id, 10, &id) ||
		    __builtin_add_overflow(id, digit, &id))
			return 0;
	}
	return id;
}

const char *id_text(struct arena *arena, int64_t id)
{
	return arena_printf(arena, "%" PRId64, id);
}

/* Macros of libraries that cppcheck does not look into. */
#define DL_FOREACH(head, el) for (el = head; el; el = el->next)
#define DL_FOREACH_SAFE(head, el, next_el) \
	for (el = head; el && (next_el = el->next, 1); el = next_el)

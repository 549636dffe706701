/*
 * line -- a person's connection to the node, made again as needed.
 *
 * One thread a line.
 */
#ifndef POSTRIDER_CHAOS_LINE_H
#define POSTRIDER_CHAOS_LINE_H

#include "tests/chaos/site.h"
#include "tests/lib/plain_http.h"

struct line {
	const struct side *side;
	const struct chaos_person *person; /* NULL: nobody yet */
	struct plain_http http;
	bool open;
	int calls;
};

void line_close(struct line *line);

/* The status; 0: no answer. */
int line_call(struct line *line, struct arena *arena, const char *method,
    const char *path, const char *body, struct plain_answer *answer);
/* Posts until it is taken, for a minute. */
bool line_insist(struct line *line, struct arena *arena, const char *path,
    const char *body, struct plain_answer *answer);

/* A text member, or NULL. */
const char *line_text(const struct json *value, const char *name);

/* Everybody registers, and every two nodes peer. */
bool line_people(struct site *site);

#endif

/*
 * recording -- the recorded traffic of real servers, read from beside the
 * checkout ($POSTRIDER_WIRE).
 *
 * A case is a list of exchanges in time order. Where the recordings are
 * absent a test says so and skips.
 */
#ifndef POSTRIDER_RECORDING_H
#define POSTRIDER_RECORDING_H

#include "common/base/json.h"

struct exchange {
	const char *from; /* host names; "client" and "driver" are no nodes */
	const char *to;
	int64_t at;
	const char *method;
	const char *path;
	const struct json *headers;
	struct bytes body;
	int status; /* 0: no answer was given */
	const char *answer;
	const char *secret;
	bool is_signed;
	bool signature_valid;
	const char *signature_over; /* NULL: the bytes as sent */
	const char *fault;	    /* the recorder answered or cut itself */
	const char *note;
};

struct recording {
	struct exchange *exchanges;
	size_t count;
};

/* Skips the test, saying so, where the recordings are absent. */
void recording_check(void);

/* name: "120-relay-auth-errors"; the test fails when there is none. */
struct recording recording_load(struct arena *arena, const char *name);

/* The same of another version of the recorded server; NULL: the first. */
struct recording recording_load_of(
    struct arena *arena, const char *version, const char *name);

/* A request header, whatever its case; NULL: absent. */
const char *exchange_header(const struct exchange *exchange, const char *name);

/* Does its body hold only events of these types (space separated)? */
bool exchange_has_only(
    struct arena *arena, const struct exchange *exchange, const char *types);

/* text with every what replaced by by. */
const char *text_replaced(
    struct arena *arena, const char *text, const char *what, const char *by);

#endif

/*
 * test_forged -- an event of each type, with whoever one likes acting.
 *
 * One payload serves them all: every member in which some type looks for its
 * actor names the same person.
 */
#ifndef POSTRIDER_TEST_FORGED_H
#define POSTRIDER_TEST_FORGED_H

#include "common/federation/batch.h"

/* who: the content of {"homeUserId":..,"homeInstance":..}; about: the id of a
 * message of about_host; place: a federated id. */
struct forgery {
	const char *who;
	const char *whom;   /* somebody else who is spoken of, as who */
	const char *friend; /* the other side of a friendship */
	const char *about;
	const char *about_instance;
	const char *place;
};

const char *forged_event(struct arena *arena, const struct event_type *type,
    const struct forgery *forgery);

/* Names nobody: what counts is whose message it is about. */
bool forged_names_nobody(const struct event_type *type);

#endif

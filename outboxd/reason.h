/*
 * reason -- what a peer's word about an event means to us. One table.
 *
 * Any thread, no state.
 */
#ifndef POSTRIDER_REASON_H
#define POSTRIDER_REASON_H

#include "common/base/base.h"

enum reason_class {
	REASON_THERE,	     /* the peer has it already: settled */
	REASON_NEVER,	     /* can never change: a dead letter */
	REASON_CONVERSATION, /* for now; the conversation waits behind it */
	REASON_MESSAGE,	     /* for now; what is about the message waits */
	REASON_ENTITY	     /* for now; the same thing waits */
};

/* event_type is what was sent; an unknown word is for now. */
enum reason_class reason_class(const char *event_type, const char *word);

/* Words of our own, for entries the answer did not settle. */
#define REASON_UNANSWERED "unanswered"
#define REASON_BOTH_LISTS "in_both_lists"

#endif

/*
 * sync_site -- a node with a log, and hosts that ask for it, below HTTP.
 *
 * As relay_site, with words for making conversations and asking.
 */
#ifndef POSTRIDER_SYNC_SITE_H
#define POSTRIDER_SYNC_SITE_H

#include "common/chat/message.h"
#include "tests/integration/relay_site.h"

/* A person of another node. */
int64_t sync_site_person(
    struct relay_site *site, const char *host, const char *home_id);
int64_t sync_site_pair(struct relay_site *site, int64_t a, int64_t b);
/* A group of ours; owner is one of the members. */
int64_t sync_site_group(struct relay_site *site, const char *federated_id,
    int64_t owner, const char *members);

struct message sync_site_say(struct relay_site *site, int64_t channel,
    int64_t author, const char *content);
void sync_site_edit(struct relay_site *site, const struct message *message,
    const char *content);
void sync_site_delete(struct relay_site *site, const struct message *message);

/* A row of the log as it is written for any other event. */
struct sync_log_row {
	const char *context_type;
	const char *context_id;
	const char *event_type;
	const char *entity_id;
	const char *payload;
	const char *hosts; /* 'a','b' */
};
void sync_site_log(struct relay_site *site, const struct sync_log_row *row);

/* The answer to a question, and what it holds. */
const char *sync_site_ask(
    struct relay_site *site, const char *host, const char *question);
/* "create update delete ..."; "" for none. */
const char *sync_site_types(struct relay_site *site, const char *answer);
/* Their messageIds. */
const char *sync_site_ids(struct relay_site *site, const char *answer);
int64_t sync_site_checkpoint(const char *answer);
bool sync_site_more(const char *answer);

#endif

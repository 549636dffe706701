/*
 * group_site -- events of groups as nodes tell them, and what becomes of them.
 *
 * The site of relay_site.h, where zed and yan are at home at luna, and a
 * second peer, mars, where mia is. Each event is a second later than the one
 * before. One site a process.
 */
#ifndef POSTRIDER_GROUP_SITE_H
#define POSTRIDER_GROUP_SITE_H

#include "tests/integration/relay_site.h"

#define FED "c51b6cfa-15c6-4f7c-ae89-aff88db828e0"
#define FED_2 "31711a36-e398-4e46-901b-7d57adcd28b4"
#define LUNA(id) "{\"homeUserId\":\"" id "\",\"homeInstance\":\"luna.test\"}"
#define ZED LUNA("700")
#define YAN LUNA("701")
#define MIA "{\"homeUserId\":\"300\",\"homeInstance\":\"mars.test\"}"
#define ALICE "{\"homeUserId\":\"$alice\",\"homeInstance\":\"nova.test\"}"
#define BOB "{\"homeUserId\":\"$bob\",\"homeInstance\":\"https://nova.test\"}"

#define ANSWER(accepted, rejected) \
	"{\"accepted\":[" accepted "],\"rejected\":[" rejected \
	"],\"maxUploadSize\":7340032}"
#define ACCEPTED(ids) ANSWER(ids, "")
#define REFUSAL(id, why) "{\"messageId\":\"" id "\",\"reason\":\"" why "\"}"
#define REJECTED(id, why) ANSWER("", REFUSAL(id, why))

#define ROSTER(owner, members) \
	",\"group\":{\"owner\":" owner ",\"members\":[" members "]}"
/* zed's group with alice and mia. */
#define THREE ROSTER(ZED, SITE_ZED "," ALICE "," MIA)

/* Skips the test without a database. */
void group_site_begin(void);
void group_site_end(void);
struct relay_site *group_site(void);
const struct peer *group_mars(void);

/* $alice and $bob are their ids. */
const char *with_ids(const char *text);
const char *told_event(
    const char *type, const char *id, const char *group, const char *members);
const char *told_add_to(const char *id, const char *group, const char *who,
    const char *by, const char *roster);
const char *told_add(
    const char *id, const char *who, const char *by, const char *roster);
const char *told_removal(
    const char *id, const char *who, const char *by, const char *reason);
const char *told_transfer(const char *id, const char *to, const char *from);
const char *told_message(const char *id, const char *author);

/* The answer to a batch. */
const char *from_luna(const char *events);
const char *from_mars(const char *events);

int64_t group_count(const char *what);
const char *group_text(const char *query);
void group_sql(const char *script);
/* Name or home id of the members, the owner with a star. */
const char *group_members(void);
/* What must not change when nothing happens. */
const char *group_state(void);
/* zed's group of three. */
void group_begin(void);

#endif

/*
 * activitypub -- the signature vectors of $POSTRIDER_WIRE/activitypub.
 *
 * Requests come as their bytes and pass our own parser. Where the vectors are
 * absent a test says so and skips.
 */
#ifndef POSTRIDER_WIRE_ACTIVITYPUB_H
#define POSTRIDER_WIRE_ACTIVITYPUB_H

#include "common/base/json.h"
#include "common/crypto/pkey.h"
#include "common/fediverse/sig_message.h"

/* One signed request; vector is its own record. */
struct ap_request {
	const char *id;
	const struct json *vector;
	const char *actor;
	int64_t now_s;
	struct sig_message message;
};

struct ap_requests {
	struct ap_request *items;
	size_t count;
};

/* A whole file; the test fails when it is not there. */
const struct json *ap_file(struct arena *arena, const char *name);

/* All requests of a file of vectors, those within exchanges too. */
struct ap_requests ap_requests(struct arena *arena, const char *name);

const char *ap_text(const struct json *value, const char *name);
int64_t ap_number(const struct json *value, const char *name);
/* Its list signatures, or the vector itself where it stands for one. */
size_t ap_signature_count(const struct json *vector);
const struct json *ap_signature(const struct json *vector, size_t place);

/* NULL: keyId leads nowhere. The keys live as long as the arena. */
const struct pkey *ap_key(
    struct arena *arena, const struct ap_request *request, const char *key_id);
/* By its name in keys.json, the private part. */
const struct pkey *ap_private(struct arena *arena, const char *name);
const struct pkey *ap_key_of(struct arena *arena, const char *pem, bool secret);

#endif

#include "common/net/limit.h"

#include "common/base/clock.h"

#include <sys/random.h>

/*
 * Entries are known by a keyed 64-bit hash of scope and key: nobody outside
 * can aim for another's entry, and chance does not find one.
 */
struct entry {
	uint64_t hash;
	int64_t ends_ms;
	int64_t count;
	uint32_t next;	       /* in its bucket */
	uint32_t older, newer; /* by the begin of the window */
};

#define NONE UINT32_MAX

struct limit {
	uint64_t seed[2];
	struct entry *entries;
	uint32_t *buckets;
	uint32_t used, max, mask;
	uint32_t oldest, newest;
};

/* ---- SipHash-2-4 ---- */

struct sip {
	uint64_t v[4];
	uint64_t word; /* up to eight bytes that wait, and the total length */
	size_t len;
};

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void sip_word(struct sip *sip, uint64_t word)
{
	sip->v[3] ^= word;
	sip_round(sip->v);
	sip_round(sip->v);
	sip->v[0] ^= word;
}

static void sip_add(struct sip *sip, const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++) {
		sip->word |= (uint64_t)bytes[i] << (sip->len++ % 8 * 8);
		if (sip->len % 8 == 0) {
			sip_word(sip, sip->word);
			sip->word = 0;
		}
	}
}

static uint64_t sip_end(struct sip *sip)
{
	sip_word(sip, sip->word | (uint64_t)sip->len << 56);
	sip->v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(sip->v);
	return sip->v[0] ^ sip->v[1] ^ sip->v[2] ^ sip->v[3];
}

static uint64_t limit_hash(
    const struct limit *limit, const char *scope, const char *key)
{
	struct sip sip = { .v = {
			       limit->seed[0] ^ UINT64_C(0x736f6d6570736575),
			       limit->seed[1] ^ UINT64_C(0x646f72616e646f6d),
			       limit->seed[0] ^ UINT64_C(0x6c7967656e657261),
			       limit->seed[1] ^ UINT64_C(0x7465646279746573),
			   } };

	sip_add(&sip, scope, strlen(scope) + 1);
	sip_add(&sip, key, strlen(key));
	return sip_end(&sip);
}

/* ---- entries ---- */

static uint32_t *bucket_of(const struct limit *limit, uint64_t hash)
{
	return &limit->buckets[hash & limit->mask];
}

static struct entry *entry_find(const struct limit *limit, uint64_t hash)
{
	uint32_t at = *bucket_of(limit, hash);

	while (at != NONE && limit->entries[at].hash != hash)
		at = limit->entries[at].next;
	return at != NONE ? &limit->entries[at] : NULL;
}

static void entry_unlink(struct limit *limit, const struct entry *entry)
{
	uint32_t *older = entry->newer != NONE
	    ? &limit->entries[entry->newer].older
	    : &limit->newest;
	uint32_t *newer = entry->older != NONE
	    ? &limit->entries[entry->older].newer
	    : &limit->oldest;

	*older = entry->older;
	*newer = entry->newer;
}

static void entry_make_newest(struct limit *limit, struct entry *entry)
{
	uint32_t at = (uint32_t)(entry - limit->entries);

	entry->newer = NONE;
	entry->older = limit->newest;
	if (limit->newest != NONE)
		limit->entries[limit->newest].newer = at;
	else
		limit->oldest = at;
	limit->newest = at;
}

static void entry_forget(struct limit *limit, struct entry *entry)
{
	uint32_t at = (uint32_t)(entry - limit->entries);
	uint32_t *link = bucket_of(limit, entry->hash);

	while (*link != at)
		link = &limit->entries[*link].next;
	*link = entry->next;
	entry_unlink(limit, entry);
}

static struct entry *entry_new(struct limit *limit, uint64_t hash)
{
	uint32_t *bucket = bucket_of(limit, hash);
	uint32_t at = limit->used;
	struct entry *entry;

	if (limit->used < limit->max) {
		limit->used++;
	} else {
		at = limit->oldest;
		entry_forget(limit, &limit->entries[at]);
	}
	entry = &limit->entries[at];
	*entry = (struct entry){ .hash = hash, .next = *bucket };
	*bucket = at;
	entry_make_newest(limit, entry);
	return entry;
}

/* ---- public ---- */

static void *limit_array(size_t count, size_t size)
{
	void *array = calloc(count, size);

	if (array == NULL)
		abort();
	return array;
}

struct limit *limit_new(size_t keys_max)
{
	struct limit *limit = limit_array(1, sizeof(*limit));
	size_t buckets = 1;

	assert(keys_max > 0 && keys_max <= INT32_MAX);
	while (buckets < keys_max)
		buckets *= 2;
	limit->max = (uint32_t)keys_max;
	limit->mask = (uint32_t)(buckets - 1);
	limit->oldest = limit->newest = NONE;
	limit->entries = limit_array(keys_max, sizeof(struct entry));
	limit->buckets = limit_array(buckets, sizeof(uint32_t));
	memset(limit->buckets, 0xff, buckets * sizeof(uint32_t));
	if (getrandom(limit->seed, sizeof(limit->seed), 0) !=
	    (ssize_t)sizeof(limit->seed))
		abort();
	return limit;
}

void limit_free(struct limit **limit)
{
	if (*limit == NULL)
		return;
	free((*limit)->entries);
	free((*limit)->buckets);
	free(*limit);
	*limit = NULL;
}

struct limit_state limit_count(struct limit *limit, const char *scope,
    const char *key, int64_t max, int64_t window_ms)
{
	int64_t now = clock_steady_ms();
	uint64_t hash = limit_hash(limit, scope, key);
	struct limit_state state = { .allowed = true, .max = max };
	struct entry *entry;

	state.reset_s = (window_ms + 999) / 1000;
	if (max <= 0)
		return state;
	entry = entry_find(limit, hash);
	if (entry == NULL)
		entry = entry_new(limit, hash);
	if (entry->ends_ms <= now) {
		entry->count = 0;
		entry->ends_ms = now + window_ms;
		entry_unlink(limit, entry);
		entry_make_newest(limit, entry);
	}
	state.allowed = entry->count < max;
	entry->count += state.allowed;
	state.remaining = max > entry->count ? max - entry->count : 0;
	state.reset_s = (entry->ends_ms - now + 999) / 1000;
	return state;
}

void limit_give_back(struct limit *limit, const char *scope, const char *key)
{
	struct entry *entry = entry_find(limit, limit_hash(limit, scope, key));

	if (entry && entry->count > 0 && entry->ends_ms > clock_steady_ms())
		entry->count--;
}

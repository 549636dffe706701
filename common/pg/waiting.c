#include "common/pg/waiting.h"

/* NOLINTBEGIN(readability-function-size): the macros of uthash */
static struct waiting *find(
    struct waiting *waiting, const struct waiting_key *key)
{
	struct waiting *entry;

	HASH_FIND(hh, waiting, key, sizeof(*key), entry);
	return entry;
}

static void add(struct waiting **waiting, struct waiting *entry)
{
	HASH_ADD(hh, *waiting, key, sizeof(entry->key), entry);
}
/* NOLINTEND(readability-function-size) */

static struct waiting_key key_of(const struct signal *signal)
{
	struct waiting_key key;

	memset(&key, 0, sizeof(key));
	key.key = signal->key;
	key.channel = signal->channel;
	memcpy(key.word, signal->word, sizeof(key.word));
	return key;
}

static struct waiting *entry_new(
    struct waiting **waiting, const struct waiting_key *key)
{
	struct waiting *entry = calloc(1, sizeof(*entry));

	if (!entry)
		abort();
	memcpy(&entry->key, key, sizeof(*key));
	add(waiting, entry);
	return entry;
}

void waiting_put(struct waiting **waiting, const struct signal *signal)
{
	const struct waiting_key key = key_of(signal);
	struct waiting *entry = find(*waiting, &key);

	if (!entry && waiting_count(*waiting) >= WAITING_MAX)
		return;
	if (!entry)
		entry = entry_new(waiting, &key);
	if (signal->seq > entry->seq)
		entry->seq = signal->seq;
	free(entry->payload);
	entry->payload = signal->payload ? strdup(signal->payload) : NULL;
}

struct signal waiting_signal(const struct waiting *entry)
{
	struct signal signal = {
		.channel = (enum signal_channel)entry->key.channel,
		.key = entry->key.key,
		.seq = entry->seq,
		.payload = entry->payload,
	};

	memcpy(signal.word, entry->key.word, sizeof(signal.word));
	return signal;
}

size_t waiting_count(const struct waiting *waiting)
{
	return HASH_COUNT(waiting);
}

/* The elements stay linked when their table goes. */
void waiting_free(struct waiting **waiting)
{
	struct waiting *entry = *waiting;

	HASH_CLEAR(hh, *waiting);
	while (entry) {
		struct waiting *next = entry->hh.next;

		free(entry->payload);
		free(entry);
		entry = next;
	}
}

#include "common/net/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* An address without its port; IPv4 is the last four bytes of a mapped one. */
struct address {
	unsigned char bytes[16];
	bool v4;
};

struct network {
	const char *text;
	int bits;
};

/* What IANA's registries do not call globally reachable. */
static const struct network not_public_v4[] = {
	{ "0.0.0.0", 8 },
	{ "10.0.0.0", 8 },
	{ "100.64.0.0", 10 },
	{ "127.0.0.0", 8 },
	{ "169.254.0.0", 16 },
	{ "172.16.0.0", 12 },
	{ "192.0.0.0", 24 },
	{ "192.0.2.0", 24 },
	{ "192.88.99.0", 24 },
	{ "192.168.0.0", 16 },
	{ "198.18.0.0", 15 },
	{ "198.51.100.0", 24 },
	{ "203.0.113.0", 24 },
	{ "224.0.0.0", 4 },
	{ "240.0.0.0", 4 },
};

/* Within 2000::/3; what is outside is not public anyway. */
static const struct network not_public_v6[] = {
	{ "2001::", 23 }, /* Teredo, ORCHID, benchmarks */
	{ "2001:db8::", 32 },
	{ "2002::", 16 }, /* 6to4 */
	{ "3fff::", 20 },
};

static const struct network global_v6 = { "2000::", 3 };

static const unsigned char mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

static bool address_from_v6(struct address *address, const void *bytes)
{
	memcpy(address->bytes, bytes, 16);
	address->v4 = memcmp(bytes, mapped_prefix, 12) == 0;
	return true;
}

static bool address_from_v4(struct address *address, const void *bytes)
{
	memcpy(address->bytes, mapped_prefix, 12);
	memcpy(address->bytes + 12, bytes, 4);
	address->v4 = true;
	return true;
}

static bool address_from_text(struct address *address, const char *text)
{
	unsigned char bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		return address_from_v4(address, bytes);
	if (inet_pton(AF_INET6, text, bytes) == 1)
		return address_from_v6(address, bytes);
	return false;
}

static bool address_from_socket(
    struct address *address, const struct sockaddr *addr)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (addr->sa_family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		return address_from_v4(address, &in.sin_addr);
	}
	if (addr->sa_family == AF_INET6) {
		memcpy(&in6, addr, sizeof(in6));
		return address_from_v6(address, &in6.sin6_addr);
	}
	return false;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, int bits)
{
	int whole = bits / 8;
	unsigned mask = 0xff00u >> (bits % 8) & 0xff;

	return memcmp(a, b, (size_t)whole) == 0 &&
	    (mask == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

static bool address_in(
    const struct address *address, const char *text, int bits)
{
	struct address network;

	if (!address_from_text(&network, text) || network.v4 != address->v4)
		return false;
	if (address->v4)
		bits += 96;
	return same_bits(address->bytes, network.bytes, bits);
}

static bool address_in_any(
    const struct address *address, const struct network *networks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (address_in(address, networks[i].text, networks[i].bits))
			return true;
	return false;
}

static const char *address_text(
    struct arena *arena, const struct address *address)
{
	char *text = arena_alloc(arena, INET6_ADDRSTRLEN);

	if (address->v4)
		inet_ntop(AF_INET, address->bytes + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address->bytes, text, INET6_ADDRSTRLEN);
	return text;
}

/* One entry of a list of trusted ones: an address, a network or a word. */
static bool entry_matches(const char *text, char *entry)
{
	struct address address;
	struct address base;
	char *slash = strchr(entry, '/');
	char *end;
	long bits;

	if (strcmp(text, entry) == 0)
		return true;
	if (!address_from_text(&address, text))
		return false;
	if (slash != NULL)
		*slash = '\0';
	if (!address_from_text(&base, entry))
		return false;
	if (slash == NULL)
		return address_in(&address, entry, base.v4 ? 32 : 128);
	bits = strtol(slash + 1, &end, 10);
	return end != slash + 1 && *end == '\0' && bits >= 0 &&
	    bits <= (base.v4 ? 32 : 128) &&
	    address_in(&address, entry, (int)bits);
}

/* "192.0.2.7:4711" and "[2001:db8::1]:80" name an address, too. */
static const char *without_port(struct arena *arena, const char *text)
{
	const char *colon = strchr(text, ':');

	if (*text == '[')
		return arena_textn(arena, text + 1, strcspn(text + 1, "]"));
	if (colon != NULL && strchr(colon + 1, ':') == NULL)
		return arena_textn(arena, text, (size_t)(colon - text));
	return text;
}

bool addr_is_public(const struct sockaddr *addr)
{
	struct address address;

	if (!address_from_socket(&address, addr))
		return false;
	if (address.v4)
		return addr->sa_family == AF_INET &&
		    !address_in_any(
			&address, not_public_v4, COUNT(not_public_v4));
	return address_in_any(&address, &global_v6, 1) &&
	    !address_in_any(&address, not_public_v6, COUNT(not_public_v6));
}

bool addr_is_loopback(const struct sockaddr *addr)
{
	struct address address;

	return address_from_socket(&address, addr) &&
	    (address_in(&address, "127.0.0.0", 8) ||
		address_in(&address, "::1", 128));
}

const char *addr_text(struct arena *arena, const struct sockaddr *addr)
{
	struct address address;

	if (addr->sa_family == AF_UNIX)
		return "unix";
	return address_from_socket(&address, addr)
	    ? address_text(arena, &address)
	    : "unknown";
}

const char *addr_limit_key(struct arena *arena, const char *text)
{
	struct address address;

	if (!address_from_text(&address, text))
		return arena_text(arena, text);
	if (address.v4)
		return address_text(arena, &address);
	memset(address.bytes + 8, 0, 8);
	return arena_printf(arena, "%s/64", address_text(arena, &address));
}

bool addr_in_list(const char *text, const char *trusted)
{
	char entry[INET6_ADDRSTRLEN + 8];

	while (trusted != NULL && *trusted != '\0') {
		size_t len;

		trusted += strspn(trusted, ", \t");
		len = strcspn(trusted, ", \t");
		if (len > 0 && len < sizeof(entry)) {
			memcpy(entry, trusted, len);
			entry[len] = '\0';
			if (entry_matches(text, entry))
				return true;
		}
		trusted += len;
	}
	return false;
}

const char *addr_client(struct arena *arena, const char *peer,
    const char *forwarded_for, const char *trusted)
{
	const char *client = peer;
	size_t end = forwarded_for != NULL ? strlen(forwarded_for) : 0;

	while (end > 0 && addr_in_list(client, trusted)) {
		struct address address;
		const char *hop;
		size_t begin;

		while (end > 0 && strchr(", \t", forwarded_for[end - 1]))
			end--;
		begin = end;
		while (begin > 0 && !strchr(", \t", forwarded_for[begin - 1]))
			begin--;
		hop = without_port(arena,
		    arena_textn(arena, forwarded_for + begin, end - begin));
		if (!address_from_text(&address, hop))
			return client;
		client = address_text(arena, &address);
		end = begin;
	}
	return client;
}

bool addr_name_is_absent(const char *name)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int code = getaddrinfo(name, NULL, &hints, &found);

	if (code == 0)
		freeaddrinfo(found);
	return code == EAI_NONAME || code == EAI_NODATA;
}

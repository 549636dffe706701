/*
 * Addresses: which are public, and by which text clients are counted.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/net/addr.h"

static struct arena *arena;

static void begin(void)
{
	arena = arena_new();
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(addr, .init = begin, .fini = end);

static struct sockaddr *address(const char *text)
{
	struct sockaddr_in *in = ARENA_NEW(arena, struct sockaddr_in);
	struct sockaddr_in6 *in6 = ARENA_NEW(arena, struct sockaddr_in6);

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		return (struct sockaddr *)in;
	}
	cr_assert_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	in6->sin6_family = AF_INET6;
	return (struct sockaddr *)in6;
}

static const struct {
	const char *text;
	bool is_public;
} ranges[] = {
	/* clang-format off */
	{ "8.8.8.8", true },
	{ "1.0.0.0", true },
	{ "0.0.0.0", false },
	{ "0.255.255.255", false },
	{ "9.255.255.255", true },
	{ "10.0.0.0", false },
	{ "10.255.255.255", false },
	{ "11.0.0.0", true },
	{ "100.63.255.255", true },
	{ "100.64.0.0", false },
	{ "100.127.255.255", false },
	{ "100.128.0.0", true },
	{ "127.0.0.1", false },
	{ "127.255.255.255", false },
	{ "169.253.255.255", true },
	{ "169.254.169.254", false },
	{ "172.15.255.255", true },
	{ "172.16.0.0", false },
	{ "172.31.255.255", false },
	{ "172.32.0.0", true },
	{ "192.0.0.1", false },
	{ "192.0.2.1", false },
	{ "192.88.99.1", false },
	{ "192.167.255.255", true },
	{ "192.168.0.1", false },
	{ "192.169.0.0", true },
	{ "198.17.255.255", true },
	{ "198.18.0.0", false },
	{ "198.19.255.255", false },
	{ "198.20.0.0", true },
	{ "198.51.100.1", false },
	{ "203.0.113.1", false },
	{ "223.255.255.255", true },
	{ "224.0.0.1", false },
	{ "240.0.0.1", false },
	{ "255.255.255.255", false },
	{ "::", false },
	{ "::1", false },
	{ "::8.8.8.8", false },
	{ "::ffff:8.8.8.8", false },
	{ "::ffff:127.0.0.1", false },
	{ "64:ff9b::808:808", false },
	{ "64:ff9b:1::1", false },
	{ "100::1", false },
	{ "1fff::1", false },
	{ "2001::1", false },
	{ "2001:1ff:ffff::1", false },
	{ "2001:200::1", true },
	{ "2001:db8::1", false },
	{ "2001:db9::1", true },
	{ "2002:808:808::1", false },
	{ "2003::1", true },
	{ "2606:4700::1111", true },
	{ "3ffe:ffff::1", true },
	{ "3fff::1", false },
	{ "3fff:1000::1", true },
	{ "4000::1", false },
	{ "5f00::1", false },
	{ "fc00::1", false },
	{ "fd00::1", false },
	{ "fe80::1", false },
	{ "fec0::1", false },
	{ "ff02::1", false },
	/* clang-format on */
};

Test(addr, only_global_unicast_is_public)
{
	for (size_t i = 0; i < COUNT(ranges); i++)
		cr_expect_eq(addr_is_public(address(ranges[i].text)),
		    ranges[i].is_public, "%s", ranges[i].text);
}

Test(addr, loopback_is_known_in_every_form)
{
	static const struct {
		const char *text;
		bool is_loopback;
	} rows[] = {
		{ "127.0.0.1", true },
		{ "127.200.0.1", true },
		{ "::1", true },
		{ "::ffff:127.0.0.1", true },
		{ "128.0.0.1", false },
		{ "::2", false },
		{ "10.0.0.1", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_eq(addr_is_loopback(address(rows[i].text)),
		    rows[i].is_loopback, "%s", rows[i].text);
}

Test(addr, a_socket_without_an_address_is_neither)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const struct sockaddr *addr = (const struct sockaddr *)&name;

	cr_expect_not(addr_is_public(addr));
	cr_expect_not(addr_is_loopback(addr));
	cr_expect_str_eq(addr_text(arena, addr), "unix");
}

Test(addr, texts_and_keys_are_those_people_read)
{
	static const struct {
		const char *text, *shown, *key;
	} rows[] = {
		{ "192.0.2.7", "192.0.2.7", "192.0.2.7" },
		{ "::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7" },
		{ "2001:DB8::1", "2001:db8::1", "2001:db8::/64" },
		{ "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6",
		    "2001:db8:1:2::/64" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *shown = addr_text(arena, address(rows[i].text));

		cr_expect_str_eq(shown, rows[i].shown);
		cr_expect_str_eq(addr_limit_key(arena, shown), rows[i].key);
	}
	cr_expect_str_eq(addr_limit_key(arena, "unix"), "unix");
}

Test(addr, lists_name_addresses_and_networks)
{
	static const struct {
		const char *text, *list;
		bool in;
	} rows[] = {
		{ "127.0.0.1", NULL, false },
		{ "127.0.0.1", "", false },
		{ "127.0.0.1", "127.0.0.1", true },
		{ "127.0.0.1", "10.0.0.0/8,127.0.0.1", true },
		{ "10.9.8.7", " 192.168.0.0/16 , 10.0.0.0/8 ", true },
		{ "11.0.0.1", "10.0.0.0/8", false },
		{ "10.0.0.129", "10.0.0.128/25", true },
		{ "10.0.0.127", "10.0.0.128/25", false },
		{ "9.9.9.9", "0.0.0.0/0", true },
		{ "::1", "0.0.0.0/0", false },
		{ "::1", "::/0", true },
		{ "2001:db8::5", "2001:db8::/32", true },
		{ "2001:db9::5", "2001:db8::/32", false },
		{ "2001:DB8::0:1", "2001:db8::1", true },
		{ "10.0.0.1", "10.0.0.0/33", false },
		{ "10.0.0.1", "10.0.0.0/", false },
		{ "10.0.0.1", "10.0.0.0/-1", false },
		{ "10.0.0.1", "10.0.0.0/8x", false },
		{ "10.0.0.1", "10.0.0", false },
		{ "unix", "127.0.0.1, unix", true },
		{ "unix", "127.0.0.1", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_eq(addr_in_list(rows[i].text, rows[i].list),
		    rows[i].in, "%s in %s", rows[i].text, rows[i].list);
}

Test(addr, the_client_is_the_right_most_hop_that_is_not_trusted)
{
	static const struct {
		const char *peer, *forwarded, *trusted, *client;
	} rows[] = {
		/* clang-format off */
		{ "9.9.9.9", NULL, NULL, "9.9.9.9" },
		{ "9.9.9.9", "1.1.1.1", NULL, "9.9.9.9" },
		{ "9.9.9.9", "1.1.1.1", "10.0.0.0/8", "9.9.9.9" },
		{ "10.0.0.1", NULL, "10.0.0.0/8", "10.0.0.1" },
		{ "10.0.0.1", "", "10.0.0.0/8", "10.0.0.1" },
		{ "10.0.0.1", "1.1.1.1", "10.0.0.0/8", "1.1.1.1" },
		{ "10.0.0.1", "6.6.6.6, 1.1.1.1", "10.0.0.0/8", "1.1.1.1" },
		{ "10.0.0.1", "6.6.6.6, 1.1.1.1,10.0.0.2", "10.0.0.0/8", "1.1.1.1" },
		{ "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.0/8", "10.0.0.3" },
		{ "10.0.0.1", "1.1.1.1, junk", "10.0.0.0/8", "10.0.0.1" },
		{ "10.0.0.1", "junk, 1.1.1.1", "10.0.0.0/8", "1.1.1.1" },
		{ "10.0.0.1", "1.1.1.1:4711", "10.0.0.0/8", "1.1.1.1" },
		{ "10.0.0.1", "[2001:DB8::1]:80", "10.0.0.0/8", "2001:db8::1" },
		{ "10.0.0.1", "::ffff:1.1.1.1", "10.0.0.0/8", "1.1.1.1" },
		{ "unix", "1.1.1.1", "unix", "1.1.1.1" },
		/* clang-format on */
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_str_eq(addr_client(arena, rows[i].peer,
				     rows[i].forwarded, rows[i].trusted),
		    rows[i].client, "row %zu", i);
}

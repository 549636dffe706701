/*
 * Where the HTTP server can listen, and TLS.
 */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/http_site.h"

#define HOST "Host: localhost\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static struct site site;

static void begin(void)
{
	site_init(&site);
}

TestSuite(http_listen, .init = begin, .timeout = 300);

Test(http_listen, addresses_that_are_none_are_refused_with_a_reason)
{
	static const char *const bad[] = { "", "8080", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:x", "[::1:80", "::1:80",
		"unix:", "fd:", "fd:x", "fd:-1", "fd:0", "fd:999",
		"1.2.3.4.5:80" };
	struct loop *loop = loop_new();
	struct err err = { .code = ERR_NONE };
	struct http_server *server = http_server_new(loop, &site.def, &err);

	for (size_t i = 0; i < COUNT(bad); i++) {
		err = (struct err){ .code = ERR_NONE };
		cr_expect_not(
		    http_server_listen(server, bad[i], &err), "%s", bad[i]);
		cr_expect_eq(err.code, ERR_INVALID);
		cr_expect_neq(err.text[0], '\0');
	}
	http_server_free(&server);
	cr_expect_null(server);
	loop_free(&loop);
}

Test(http_listen, a_port_in_use_is_an_error)
{
	struct err err = { .code = ERR_NONE };
	char address[32];

	site_open(&site, "127.0.0.1:0");
	snprintf(address, sizeof(address), "127.0.0.1:%d", site.port);
	cr_expect_not(http_server_listen(site.server, address, &err));
	site_close(&site);
}

static int connect_unix(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(to.sun_path, path, strlen(path) + 1);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

Test(http_listen, a_unix_socket_serves_and_its_stale_file_is_replaced)
{
	char dir[] = "/tmp/http_listen_XXXXXX";
	char address[64];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(address, sizeof(address), "unix:%s/s", dir);
	for (int round = 0; round < 2; round++) {
		struct answer answer;
		int fd;

		site_init(&site);
		site_open(&site, address);
		fd = connect_unix(address + 5);
		wire_text(fd, GET("/x"));
		cr_assert(wire_answer(fd, &answer, false));
		cr_expect_str_eq(answer.body, "GET /x? from unix");
		answer_done(&answer);
		close(fd);
		site_close(&site);
	}
	unlink(address + 5);
	rmdir(dir);
}

Test(http_listen, an_inherited_socket_serves)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char address[16];

	cr_assert_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	cr_assert_eq(listen(fd, 10), 0);
	snprintf(address, sizeof(address), "fd:%d", fd);
	site_open(&site, address);
	cr_expect_gt(site.port, 0);
	wire_expect(wire_connect(site.port), GET("/x"), 200);
	site_close(&site);
}

/* ---- TLS ---- */

struct pem {
	char dir[32];
	char certificate[64];
	char key[64];
};

static X509 *certificate_new(EVP_PKEY *key)
{
	X509 *made = X509_new();
	X509_NAME *name = X509_get_subject_name(made);

	X509_set_version(made, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
	X509_gmtime_adj(X509_getm_notBefore(made), -60);
	X509_gmtime_adj(X509_getm_notAfter(made), 3600);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
	    (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(made, name);
	X509_set_pubkey(made, key);
	cr_assert_gt(X509_sign(made, key, EVP_sha256()), 0);
	return made;
}

static void pem_make(struct pem *pem)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = certificate_new(key);
	FILE *file;

	snprintf(pem->dir, sizeof(pem->dir), "/tmp/http_tls_XXXXXX");
	cr_assert_not_null(mkdtemp(pem->dir));
	snprintf(
	    pem->certificate, sizeof(pem->certificate), "%s/c.pem", pem->dir);
	snprintf(pem->key, sizeof(pem->key), "%s/k.pem", pem->dir);
	file = fopen(pem->certificate, "w");
	PEM_write_X509(file, certificate);
	fclose(file);
	file = fopen(pem->key, "w");
	PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
	fclose(file);
	X509_free(certificate);
	EVP_PKEY_free(key);
	site.def.tls_certificate = pem->certificate;
	site.def.tls_key = pem->key;
}

static void pem_remove(const struct pem *pem)
{
	unlink(pem->certificate);
	unlink(pem->key);
	rmdir(pem->dir);
}

static SSL *tls_connect(SSL_CTX *context, int port)
{
	SSL *ssl = SSL_new(context);

	SSL_set_fd(ssl, wire_connect(port));
	cr_assert_eq(SSL_connect(ssl), 1);
	return ssl;
}

static void tls_text(SSL *ssl, const char *text)
{
	size_t done;

	cr_assert_eq(SSL_write_ex(ssl, text, strlen(text), &done), 1);
}

/* Reads until the text ends with end; false when the connection ended. */
static bool tls_until(SSL *ssl, char *text, size_t room, const char *end)
{
	size_t len = 0;

	do {
		if (len + 1 >= room || SSL_read(ssl, text + len, 1) != 1)
			return false;
		text[++len] = '\0';
	} while (
	    len < strlen(end) || strcmp(text + len - strlen(end), end) != 0);
	return true;
}

Test(http_listen, tls_serves_like_clear_text)
{
	static const char *const ends[] = { "GET /a? from 127.0.0.1", "bcd",
		"3 294" };
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	struct pem pem;
	SSL *ssl;
	char text[4096];

	pem_make(&pem);
	site_open(&site, "127.0.0.1:0");
	ssl = tls_connect(context, site.port);
	tls_text(ssl,
	    GET("/a") "POST /echo HTTP/1.1\r\n" HOST
		      "Content-Length: 3\r\n\r\nb");
	tls_text(ssl,
	    "cdPOST /later HTTP/1.1\r\n" HOST "Connection: close\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
	for (size_t i = 0; i < COUNT(ends); i++)
		cr_expect(
		    tls_until(ssl, text, sizeof(text), ends[i]), "%s", ends[i]);
	cr_expect_not(tls_until(ssl, text, sizeof(text), "more"));
	cr_expect_eq(SSL_get_shutdown(ssl), SSL_RECEIVED_SHUTDOWN);
	close(SSL_get_fd(ssl));
	SSL_free(ssl);
	SSL_CTX_free(context);
	site_close(&site);
	pem_remove(&pem);
}

Test(http_listen, tls_carries_large_bodies_both_ways)
{
	enum { SIZE = 3000000 };
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	char *data = calloc(1, SIZE);
	char text[4096];
	struct pem pem;
	SSL *ssl;
	size_t done, total = 0;

	pem_make(&pem);
	site_open(&site, "127.0.0.1:0");
	ssl = tls_connect(context, site.port);
	tls_text(ssl,
	    "POST /sum?limit=3000000 HTTP/1.1\r\n" HOST
	    "Content-Length: 3000000\r\n\r\n");
	memset(data, 1, SIZE);
	cr_assert_eq(SSL_write_ex(ssl, data, SIZE, &done), 1);
	cr_expect(tls_until(ssl, text, sizeof(text), "3000000 3000000"));
	tls_text(ssl, GET("/big"));
	cr_expect(tls_until(ssl, text, sizeof(text), "\r\n\r\n"));
	while (total < BIG && SSL_read_ex(ssl, data, SIZE, &done) == 1)
		total += done;
	cr_expect_eq(total, BIG);
	tls_text(ssl, GET("/a"));
	cr_expect(tls_until(ssl, text, sizeof(text), "from 127.0.0.1"));
	close(SSL_get_fd(ssl));
	SSL_free(ssl);
	SSL_CTX_free(context);
	site_close(&site);
	pem_remove(&pem);
	free(data);
}

Test(http_listen, broken_handshakes_leave_the_others_alone)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	struct pem pem;
	char text[4096];
	SSL *ssl;
	int clear;

	pem_make(&pem);
	site_open(&site, "127.0.0.1:0");
	for (size_t len = 1; len < 6; len++) {
		clear = wire_connect(site.port);
		wire_send(clear, "\x16\x03\x01\x00\x05", len);
		close(clear);
	}
	clear = wire_connect(site.port);
	wire_text(clear, GET("/x"));
	while (!wire_ended(clear))
		;
	close(clear);
	ssl = tls_connect(context, site.port);
	tls_text(ssl, GET("/a"));
	cr_expect(tls_until(ssl, text, sizeof(text), "from 127.0.0.1"));
	close(SSL_get_fd(ssl));
	SSL_free(ssl);
	SSL_CTX_free(context);
	site_close(&site);
	pem_remove(&pem);
}

Test(http_listen, a_certificate_that_cannot_be_read_is_an_error)
{
	struct loop *loop = loop_new();
	struct err err = { .code = ERR_NONE };

	site.def.tls_certificate = "/nonexistent.pem";
	site.def.tls_key = "/nonexistent.pem";
	cr_expect_null(http_server_new(loop, &site.def, &err));
	cr_expect_eq(err.code, ERR_INVALID);
	loop_free(&loop);
}

#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tests/unit/client_rig.h"

/* A peer that speaks TLS under a certificate nobody vouches for. */
struct tls_peer {
	SSL_CTX *ctx;
	int fd;
	int port;
	char ca_file[64];
};

static struct tls_peer tls_peer;

static X509 *self_signed(EVP_PKEY *key, const char *host)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);
	X509_EXTENSION *alt;
	char text[128];

	snprintf(text, sizeof(text), "DNS:%s", host);
	alt = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text);
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_NAME_add_entry_by_txt(
	    name, "CN", MBSTRING_UTF8, (const unsigned char *)host, -1, -1, 0);
	X509_set_issuer_name(cert, name);
	X509_add_ext(cert, alt, -1);
	X509_EXTENSION_free(alt);
	X509_set_pubkey(cert, key);
	cr_assert_gt(X509_sign(cert, key, EVP_sha256()), 0);
	return cert;
}

static void certificate_begin(const char *host)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = self_signed(key, host);
	FILE *file;

	snprintf(tls_peer.ca_file, sizeof(tls_peer.ca_file), "%s",
	    "/tmp/postrider-tls-XXXXXX");
	file = fdopen(mkstemp(tls_peer.ca_file), "w");
	PEM_write_X509(file, cert);
	fclose(file);
	tls_peer.ctx = SSL_CTX_new(TLS_server_method());
	SSL_CTX_use_certificate(tls_peer.ctx, cert);
	SSL_CTX_use_PrivateKey(tls_peer.ctx, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static void *serve(void *arg UNUSED)
{
	static const char answer[] =
	    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
	char head[4096];

	for (;;) {
		int fd = accept(tls_peer.fd, NULL, NULL);
		SSL *ssl = SSL_new(tls_peer.ctx);

		SSL_set_fd(ssl, fd);
		if (SSL_accept(ssl) == 1 &&
		    SSL_read(ssl, head, sizeof(head)) > 0)
			SSL_write(ssl, answer, sizeof(answer) - 1);
		SSL_shutdown(ssl);
		SSL_free(ssl);
		close(fd);
	}
	return NULL;
}

static void begin(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	pthread_t thread;

	signal(SIGPIPE, SIG_IGN); /* as daemon_main does */
	client_rig_begin();
	certificate_begin("nova.test");
	tls_peer.fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(tls_peer.fd, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(tls_peer.fd, 8), 0);
	getsockname(tls_peer.fd, (struct sockaddr *)&addr, &len);
	tls_peer.port = ntohs(addr.sin_port);
	pthread_create(&thread, NULL, serve, NULL);
	pthread_detach(thread);
}

static void end(void)
{
	unlink(tls_peer.ca_file);
	client_rig_end();
}

TestSuite(client_tls, .init = begin, .fini = end, .timeout = 300);

/* What a client that trusts ca_file (or nobody in particular) is told. */
static void fetch(const char *host, const char *ca_file, struct client_got *got)
{
	struct client_def def = client_rig_def;
	struct client_request request;
	char url[128], resolve[128];

	snprintf(url, sizeof(url), "https://%s:%d/", host, tls_peer.port);
	snprintf(
	    resolve, sizeof(resolve), "%s:%d:127.0.0.1", host, tls_peer.port);
	client_free(&client_rig.client);
	def.ca_file = ca_file;
	def.resolve = resolve;
	client_rig.client = client_new(client_rig.loop, &def);
	request = client_rig_get(url);
	client_rig_run(&request, got);
}

Test(client_tls, a_certificate_of_ca_file_is_taken)
{
	struct client_got got;

	fetch("nova.test", tls_peer.ca_file, &got);
	cr_expect_eq(
	    got.result.outcome, CLIENT_ANSWERED, "%s", got.result.text);
	cr_expect_str_eq(got.body, "hello");
}

Test(client_tls, a_certificate_nobody_vouches_for_is_refused)
{
	struct client_got got;

	fetch("nova.test", NULL, &got);
	cr_expect_eq(got.result.outcome, CLIENT_NO_CONNECTION);
	cr_expect_not(got.result.sent);
}

Test(client_tls, a_certificate_of_another_host_is_refused)
{
	struct client_got got;

	fetch("orbit.test", tls_peer.ca_file, &got);
	cr_expect_eq(got.result.outcome, CLIENT_NO_CONNECTION);
	cr_expect_not(got.result.sent);
}

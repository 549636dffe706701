/*
 * Our reading of awkward requests next to that of Node's HTTP server: what
 * Node refuses we refuse, and what we take Node reads as the same requests
 * with the same bodies.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/http_rows.h"
#include "tests/unit/http_site.h"

enum { ANSWERS_MAX = 8 };

/* What a server made of a stream of bytes. */
struct reading {
	bool refused;
	size_t count; /* of requests that were served */
	char bodies[ANSWERS_MAX][128];
};

struct node {
	pid_t pid;
	int input;
	int port;
};

static void node_start(struct node *node)
{
	const char *top = getenv("POSTRIDER_TOP");
	char script[512];
	int in[2], out[2];
	char text[16] = "";

	snprintf(script, sizeof(script), "%s/tests/unit/http_node.mjs",
	    top != NULL ? top : ".");
	cr_assert(pipe(in) == 0 && pipe(out) == 0);
	node->pid = fork();
	if (node->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execlp("node", "node", script, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	node->input = in[1];
	if (read(out[0], text, sizeof(text) - 1) > 0)
		node->port = (int)strtol(text, NULL, 10);
	close(out[0]);
	cr_assert_gt(node->port, 0, "%s did not start", script);
}

static void node_end(struct node *node)
{
	close(node->input);
	waitpid(node->pid, NULL, 0);
}

/* Sends the bytes, ends its side and reads until the end or a refusal. */
static struct reading read_by(int port, const char *data, size_t len)
{
	struct reading reading = { .refused = false };
	struct answer answer;
	int fd = wire_connect(port);

	wire_send(fd, data, len);
	shutdown(fd, SHUT_WR);
	while (!reading.refused && wire_answer(fd, &answer, false)) {
		reading.refused = answer.status != 200;
		if (!reading.refused) {
			cr_assert_lt(reading.count, ANSWERS_MAX);
			snprintf(reading.bodies[reading.count++],
			    sizeof(reading.bodies[0]), "%s", answer.body);
		}
		answer_done(&answer);
	}
	close(fd);
	return reading;
}

static void compare(
    int theirs_port, int ours_port, const char *name, struct bytes data)
{
	struct reading theirs = read_by(theirs_port, data.data, data.len);
	struct reading ours = read_by(ours_port, data.data, data.len);

	for (size_t i = 0; i < ours.count && i < theirs.count; i++)
		cr_expect_str_eq(ours.bodies[i], theirs.bodies[i], "%s", name);
	if (ours.refused)
		return; /* Node may forget the answers before an error */
	cr_expect_not(theirs.refused, "%s: Node refuses what we take", name);
	cr_expect_eq(ours.count, theirs.count, "%s: we served %zu, Node %zu",
	    name, ours.count, theirs.count);
	cr_expect_gt(ours.count, 0, "%s: no answer", name);
}

/* Several requests in one stream, and bodies that look like requests. */
static const struct http_row streams[] = {
	/* clang-format off */
	{ "length", TEXT(POST "Content-Length: 3\r\n\r\nabc"), 0 },
	{ "length and another", TEXT(POST "Content-Length: 3\r\n\r\nabc" POST "Content-Length: 2\r\n\r\nde"), 0 },
	{ "body that is a request", TEXT(POST "Content-Length: 46\r\n\r\nGET /x HTTP/1.1\r\nHost: hidden.example\r\n\r\nabcd" "GET / HTTP/1.1\r\n" HOST "\r\n"), 0 },
	{ "GET with a body", TEXT("GET / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "GET with chunks", TEXT("GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "DELETE with a body", TEXT("DELETE / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "OPTIONS with a body", TEXT("OPTIONS * HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "chunks and another", TEXT(CHUNKED "2\r\nab\r\n0\r\n\r\n" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "trailers and another", TEXT(CHUNKED "2\r\nab\r\n0\r\nX: y\r\nZ:\r\n\r\n" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "1.0 kept", TEXT("POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "upgrade that nobody takes", TEXT(POST "Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\na" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "length in another case", TEXT(POST "cOnTeNt-LeNgTh:1\r\n\r\na" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "coding with spaces", TEXT(POST "Transfer-Encoding:  chunked \r\n\r\n1\r\na\r\n0\r\n\r\n" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "a name like the length's", TEXT(POST "Content-Lengthy: 5\r\nContent_Length: 7\r\n\r\n" POST "Content-Length: 1\r\n\r\nc"), 0 },
	{ "smuggled behind two codings", TEXT(POST "Transfer-Encoding: gzip, chunked\r\nContent-Length: 4\r\n\r\n" "GET /smuggled HTTP/1.1\r\n" HOST "\r\n"), 0 },
	{ "smuggled behind a spaced length", TEXT(POST "Content-Length : 24\r\n\r\n" "GET /smuggled HTTP/1.1\r\n" HOST "\r\n"), 0 },
	{ "good, then bad", TEXT(POST "Content-Length: 1\r\n\r\na" POST "Content-Length: +1\r\n\r\nb"), 0 },
	/* clang-format on */
};

Test(http_node, node_reads_what_we_take_and_we_refuse_what_it_refuses)
{
	struct node node = { .port = 0 };
	struct site site;

	if (system("node --version >/dev/null 2>&1") != 0)
		cr_skip_test("node is not in PATH: nothing to compare with");
	node_start(&node);
	site_init(&site);
	site.echo = true;
	site_open(&site, "127.0.0.1:0");
	for (size_t i = 0; i < COUNT(http_heads_refused); i++)
		compare(node.port, site.port, http_heads_refused[i].name,
		    (struct bytes){ http_heads_refused[i].data,
			http_heads_refused[i].len });
	for (size_t i = 0; i < COUNT(http_chunks_refused); i++)
		compare(node.port, site.port, http_chunks_refused[i].name,
		    (struct bytes){ http_chunks_refused[i].data,
			http_chunks_refused[i].len });
	for (size_t i = 0; i < COUNT(http_taken); i++)
		compare(node.port, site.port, http_taken[i].name,
		    (struct bytes){ http_taken[i].data,
			http_taken[i].len - http_taken[i].rest });
	for (size_t i = 0; i < COUNT(streams); i++)
		compare(node.port, site.port, streams[i].name,
		    (struct bytes){ streams[i].data, streams[i].len });
	site_close(&site);
	node_end(&node);
}

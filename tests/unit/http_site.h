/*
 * http_site -- an HTTP server under test on its own thread, and a client
 * that speaks to it byte by byte.
 *
 * What the site does with a request is its path:
 *   /echo   the body comes back          /sum   "<length> <sum of bytes>"
 *   /later  /sum by a worker thread      /park  answered by site_release
 *   /close  answers and closes           /denied  403 from the head alone
 *   /big    ten million bytes            /wild  headers with line ends
 * Any other: "<method> <path>?<query> from <client>". The query limit=N names
 * the largest body, else it is 1000 bytes.
 */
#ifndef POSTRIDER_TEST_HTTP_SITE_H
#define POSTRIDER_TEST_HTTP_SITE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/work.h"
#include "common/net/http.h"

enum { BIG = 10000000, PARKED_MAX = 16 };

struct site {
	struct loop *loop;
	struct http_server *server;
	struct work_pool *pool;
	pthread_t thread;
	int port;
	bool echo;		   /* /echo, whatever the path */
	struct http_limits limits; /* may be changed before site_open */
	struct http_server_def def;
	struct http_exchange *parked[PARKED_MAX]; /* loop thread */
	atomic_int parked_count;
	atomic_int requests;
	atomic_long memory_max; /* own pages while /sum read a body */
	atomic_bool ask_done;
};

void site_init(struct site *site);
void site_open(struct site *site, const char *address);
void site_close(struct site *site);

/* Answers what is parked. */
void site_release(struct site *site);
void site_drain(struct site *site);
size_t site_busy(struct site *site);
/* Waits until that many are parked. */
void site_await_parked(struct site *site, int count);

/* Pages of this process that are not of files, in bytes. */
long memory_own(void);

/* ---- the client ---- */

struct answer {
	int status;
	char head[4096];
	char *body; /* NUL-ended; freed by answer_done */
	size_t body_len;
};

int wire_connect(int port);
void wire_send(int fd, const void *data, size_t len);
void wire_text(int fd, const char *text);
/* Reads one answer; head_only for HEAD. False: the connection ended. */
bool wire_answer(int fd, struct answer *answer, bool head_only);
/* Does it end without another byte? */
bool wire_ended(int fd);
/* Is there nothing to read within ms? */
bool wire_silent(int fd, int ms);
void answer_done(struct answer *answer);

/* Sends text and checks the status of the answer; the body is dropped. */
void wire_expect(int fd, const char *text, int status);

#endif

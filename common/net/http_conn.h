/*
 * http_conn -- one client's connection, and what it shares with the others.
 *
 * A connection moves through its states in this order, and back to IDLE
 * after an answer that keeps it:
 *
 *   IDLE     waits for a first byte      HEAD  has a part of a head
 *   BODY     reads the body              HANDLED  the handler owns the exchange
 *   ANSWER   writes what did not fit     LINGER   written and shut; what the
 *   DEAD     closed, freed by http_reap           client still sends is dropped
 *
 * Only conn_state_set moves one, with the list it is on and its deadline. Only
 * IDLE, HEAD, BODY and LINGER read. Internal to the HTTP server; loop thread.
 */
#ifndef POSTRIDER_HTTP_CONN_H
#define POSTRIDER_HTTP_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <sys/queue.h>

#include "common/base/buf.h"
#include "common/net/http.h"
#include "common/net/http_io.h"
#include "common/net/http_spool.h"

enum conn_state {
	CONN_IDLE,
	CONN_HEAD,
	CONN_BODY,
	CONN_HANDLED,
	CONN_ANSWER,
	CONN_LINGER,
	CONN_DEAD,
	CONN_STATES
};

struct http_conn;
struct http_place;

/* Lives in its own arena. */
struct http_exchange {
	struct arena *arena;
	struct http_conn *conn; /* NULL: the server has gone */
	struct http_head head;
	struct http_chunks chunks;
	struct http_spool body;
	int64_t body_max;
	const char *client;
	void *user;
};

struct http_conn {
	TAILQ_ENTRY(http_conn) link; /* in the server's list of its state */
	struct http_server *server;
	struct http_place *place; /* its address's count, or NULL */
	struct http_exchange *ex; /* from HEAD to HANDLED */
	struct http_io io;
	enum conn_state state;
	bool stepping; /* conn_step is on the stack */
	bool reading;  /* readable is added */
	bool close;    /* after the answer */
	int64_t deadline_ms;
	int64_t body_began_ms;
	int64_t requests;
	size_t dropped; /* while lingering */
	size_t written; /* of out */
	struct buf in;	/* read, not yet used */
	struct buf out; /* to be written */
	struct event readable;
	struct event writable;
	char address[INET6_ADDRSTRLEN];
};

TAILQ_HEAD(http_conns, http_conn);

struct http_listener {
	TAILQ_ENTRY(http_listener) link;
	struct http_server *server;
	int fd;
	struct event acceptable;
};

TAILQ_HEAD(http_listeners, http_listener);

enum { HTTP_SCRATCH = 65536, HTTP_SPARE_ARENAS = 16 };

struct http_server {
	struct loop *loop;
	struct http_server_def def;
	struct http_limits limits;
	SSL_CTX *tls;
	struct http_listeners listeners;
	struct http_conns conns[CONN_STATES];
	size_t counts[CONN_STATES];
	void *places; /* a tree of struct http_place */
	struct loop_timer *tick;
	bool ticking, draining, paused;
	int64_t resume_ms;   /* accepting goes on */
	int64_t complain_ms; /* the next line about descriptors */
	int port;
	struct arena *spare[HTTP_SPARE_ARENAS];
	size_t spares;
	struct buf text; /* the answer that is being written */
	int64_t date_s;
	char date[40];
	char scratch[HTTP_SCRATCH];
};

/* ---- http_conn.c ---- */

void conn_start(struct http_conn *conn);
void conn_state_set(struct http_conn *conn, enum conn_state state);
/* After an answer: what was read already, then the socket again. */
void conn_go_on(struct http_conn *conn);
/* A deadline has passed. */
void conn_late(struct http_conn *conn);
/* Closes it now; memory stays until the next http_reap. */
void conn_close(struct http_conn *conn);
void exchange_end(struct http_server *server, struct http_exchange *ex);

/* ---- http_answer.c ---- */

/* Writes what waits in out, and moves on when it was the answer's end. */
void conn_write(struct http_conn *conn);
void conn_queue(struct http_conn *conn, const char *text);
/* Lets go of the exchange; its owner ends it. conn_go_on follows. */
void conn_answer(struct http_conn *conn, const struct http_reply *reply);
/* An answer of the HTTP layer; the connection is closed after it. */
void conn_fail(struct http_conn *conn, int status);

/* ---- http_accept.c ---- */

/* Takes the listening socket over. */
void http_accept_start(struct http_server *server, int fd);
void http_accept_pause(struct http_server *server, bool pause);
void http_accept_stop(struct http_server *server);
void http_place_leave(struct http_conn *conn);

/* ---- http_listen.c ---- */

/* A listening, non-blocking socket, or -1 with err; *port for TCP. */
int http_listen_socket(const char *address, int *port, struct err *err);

/* ---- http.c ---- */

/* Sees to deadlines from now on, until nothing is left that has one. */
void http_tick_begin(struct http_server *server);

#endif

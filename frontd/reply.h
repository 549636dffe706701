/*
 * reply -- the two shapes of an error answer (client-api, "Errors").
 *
 * The application's: {"error":text,"statusCode":n}. The HTTP layer's:
 * {"statusCode":n,"code":c,"error":reason phrase,"message":text}.
 */
#ifndef POSTRIDER_REPLY_H
#define POSTRIDER_REPLY_H

#include "frontd/request.h"

/* Whatever the handler left is replaced by the error. */
void reply_error(struct request *req, const struct err *err);

/* What is wrong with the body as JSON: the HTTP layer's 400. */
void reply_bad_json(struct request *req, const char *message);

/* A reply of the HTTP layer; its body lives in the arena. code may be NULL. */
void reply_layer(struct arena *arena, struct http_reply *reply, int status,
    const char *code, const char *message);

/* A reply of the application's shape for a request that has no handler. */
void reply_plain(struct arena *arena, struct http_reply *reply, int status,
    const char *text);

#endif

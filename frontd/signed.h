/*
 * signed -- the X-Federation-* headers of a request. Worker threads.
 */
#ifndef POSTRIDER_SIGNED_H
#define POSTRIDER_SIGNED_H

#include "common/crypto/sign.h"
#include "frontd/request.h"

/* False: missing or malformed. */
bool signed_headers(const struct request *req, struct sign_headers *headers);
/* The same with its error, 401. */
MUST_CHECK bool signed_headers_check(
    const struct request *req, struct sign_headers *headers, struct err *err);

#endif

#include "frontd/signed.h"

bool signed_headers(const struct request *req, struct sign_headers *headers)
{
	const struct http_head *head = req->head;

	return sign_headers_parse(req->arena,
	    http_head_get(head, "x-federation-origin"),
	    http_head_get(head, "x-federation-timestamp"),
	    http_head_get(head, "x-federation-nonce"),
	    http_head_get(head, "x-federation-signature"), headers);
}

bool signed_headers_check(
    const struct request *req, struct sign_headers *headers, struct err *err)
{
	return signed_headers(req, headers) ||
	    err_set(err, ERR_UNAUTHORIZED,
		"Missing or malformed federation headers");
}

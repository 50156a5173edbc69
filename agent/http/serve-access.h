/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests of mainstay-api: it sends each one on behalf of a client, with that client's
 * credentials, and the agent decides on each one separately. */

#include "agent/http/http-connection.h"
#include "agent/http/http-server.h"

/* Whether the request is made on behalf of a client: this applies to all requests of mainstay-api's
 * user, and to other requests that declare it. */
bool http_is_clients_request(const HttpServer *server, struct MHD_Connection *http);

typedef enum HttpAccessResult {
        HTTP_ACCESS_GRANTED,
        HTTP_ACCESS_OVER, /* a reply was queued, or the connection waits: '*ret' is the result */
} HttpAccessResult;

/* Whether the client may do this. The request is routed again when the decision is known. */
HttpAccessResult http_check_access(HttpServer *server, struct MHD_Connection *http,
                                   const char *method, const char *path, bool is_session,
                                   enum MHD_Result *ret);

/* The user to whom http_check_access() has granted something, as JSON; borrowed. */
const char *http_granted_user(struct MHD_Connection *http);

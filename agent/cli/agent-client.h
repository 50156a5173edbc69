/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HTTP requests to the agent over its socket. */

#include "common/error.h"
#include "common/json-text.h"

/* Called with each piece of the response body. A return value other than 0 ends the request. */
typedef int (*client_data_t)(const char *data, size_t length, void *userdata);

/* Requests a path (with its query) and passes on the body of a successful response. 0 at its end,
 * -EREMOTEIO if the agent returned an error (its message is passed on), or -errno; both with a
 * message. */
int client_stream(const char *socket, const char *path, client_data_t on_data, void *userdata,
                  Error *reterr);

/* The same with a method other than GET. */
int client_request(const char *socket, const char *method, const char *path, client_data_t on_data,
                   void *userdata, Error *reterr);

/* The whole response as text, of at most 64 MiB, which the caller frees. Errors are those of
 * client_stream(). */
int client_get(const char *socket, const char *path, char **ret, Error *reterr);

/* The response as JSON, a new reference. Errors are those of client_stream(), and -EBADMSG. */
int client_get_json(const char *socket, const char *path, json_t **ret, Error *reterr);

/* Sets the message of a connection that failed with this errno; returns its negative. */
int client_explain_connection(int code, const char *socket, Error *reterr);

/* Sets the message of an error response: its body, unless that is the text with which the agent's
 * HTTP library itself refuses a request. Modifies 'text'. -E2BIG if the request is too long,
 * -EREMOTEIO. */
int client_explain_refusal(long status, char *text, Error *reterr);

/* jansson's cleanup function has a different attribute. */

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Questions to the agent, over its socket. */

#include "common/error.h"

#include <jansson.h>

/* Called with each piece of the answer as it comes. Something else than 0 ends it. */
typedef int (*client_data_t)(const char *data, size_t length, void *userdata);

/* Asks for a path (with its query) and gives the pieces of a good answer. 0 when it has come to its
 * end, -EREMOTEIO where the agent refused (the sentence is its own), or -errno; all with a
 * sentence. */
int client_stream(const char *socket, const char *path, client_data_t on_data, void *userdata,
                  Error *reterr);

/* The same with another method than GET. */
int client_request(const char *socket, const char *method, const char *path, client_data_t on_data,
                   void *userdata, Error *reterr);

/* The whole answer as text, of at most 64 MiB, which the caller frees. As client_stream(). */
int client_get(const char *socket, const char *path, char **ret, Error *reterr);

/* The answer as JSON, a new reference. As client_stream(), and -EBADMSG. */
int client_get_json(const char *socket, const char *path, json_t **ret, Error *reterr);

/* The sentence for a connection that could not be made, with this errno; gives its negative. */
int client_explain_connection(int code, const char *socket, Error *reterr);

/* A component of a path or a value of a query, escaped; the caller frees it. NULL: no memory. */
char *client_escape(const char *text);

/* jansson has the function for its own adjective. */
#define cleanup_json cleanup_with(json_decrefp)

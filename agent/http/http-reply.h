/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the query of a request and replies to it. */

#include "common/error.h"

#include <microhttpd.h>
#include <stdint.h>

/* Replies with a text, which is copied. */
enum MHD_Result http_reply_text(struct MHD_Connection *http, unsigned status, const char *type,
                                const char *text);

/* Replies with a text, which is consumed; NULL: out of memory. */
enum MHD_Result http_reply_text_consume(struct MHD_Connection *http, const char *type, char *text);
enum MHD_Result http_reply_json_consume(struct MHD_Connection *http, char *json);

/* The status for a container whose log or session is requested: 404 for -ENOENT, 400 for -EINVAL
 * and -EAGAIN (it is not running), otherwise 500. */
unsigned http_status_of_error(int r);

/* Replies with the error of the agent, or with the reason of 'r'. */
enum MHD_Result http_reply_errno(struct MHD_Connection *http, int r, const Error *error);

/* Replies with an error message of one line. */
enum MHD_Result http_reply_error(struct MHD_Connection *http, unsigned status, const char *format,
                                 ...) printf_like(3, 4);

/* Replies with 404: the server has no such path. */
enum MHD_Result http_reply_unknown_path(struct MHD_Connection *http);

/* Replies with 405 and the method that the path supports. */
enum MHD_Result http_reply_method_not_allowed(struct MHD_Connection *http, const char *allowed,
                                              const char *path);

/* The HTTP status of an errno. */
unsigned http_status_from_errno(int r);

/* A parameter of the query, or NULL. A flag is true if Go's ParseBool accepts its value, or if it
 * has no value.
 */
const char *http_query_parameter(struct MHD_Connection *http, const char *name);
bool http_query_flag(struct MHD_Connection *http, const char *name);

/* An integer of at least 'min'. 0, and '*ret' is unchanged if there is no such parameter; -EINVAL
 * with a message. */
int http_query_number(struct MHD_Connection *http, const char *name, int64_t min, int64_t *ret,
                      Error *reterr);

/* Splits "<namespace>/<pod>/<container>" in place. 0 or -EINVAL. */
int http_split_container_path(char *path, const char *ret_names[3]);

/* Whether the client is root or the agent's user. */
bool http_is_root(struct MHD_Connection *http);

/* The same, but replies with 403 if the client is neither. */
bool http_require_root(struct MHD_Connection *http, enum MHD_Result *ret);

/* SPDX-License-Identifier: Apache-2.0 */

/* Replies and query parameters; see the header. */

#include "agent/http/http-reply.h"

#include "agent/http/http-connection.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>

/* 'allowed' is the method that the path supports, or NULL. */
static enum MHD_Result queue_reply_consume(struct MHD_Connection *http, unsigned status,
                                           const char *type, const char *allowed,
                                           char *text_consume) {
        struct MHD_Response *response;
        enum MHD_Result result;

        if (!text_consume)
                return MHD_NO;
        response = MHD_create_response_from_buffer(strlen(text_consume), text_consume,
                                                   MHD_RESPMEM_MUST_FREE);
        if (!response) {
                free(text_consume);
                return MHD_NO;
        }
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        if (allowed)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allowed);
        result = MHD_queue_response(http, status, response);
        MHD_destroy_response(response);
        return result;
}

enum MHD_Result http_reply_text(struct MHD_Connection *http, unsigned status, const char *type,
                                const char *text) {
        return queue_reply_consume(http, status, type, NULL, strdup(text));
}

unsigned http_status_of_error(int r) {
        switch (r) {
        case -ENOENT:
                return MHD_HTTP_NOT_FOUND;
        case -EINVAL:
        case -EAGAIN:
                return MHD_HTTP_BAD_REQUEST;
        case -ENOTSUP:
                return MHD_HTTP_NOT_IMPLEMENTED;
        default:
                return MHD_HTTP_INTERNAL_SERVER_ERROR;
        }
}

enum MHD_Result http_reply_error(struct MHD_Connection *http, unsigned status, const char *format,
                                 ...) {
        cleanup_free char *message = NULL;
        va_list ap;

        va_start(ap, format);
        message = format_message(format, ap);
        va_end(ap);
        if (!message)
                return MHD_NO;
        return queue_reply_consume(http, status, "text/plain", NULL, text_format("%s\n", message));
}

enum MHD_Result http_reply_errno(struct MHD_Connection *http, int r, const Error *error) {
        return http_reply_error(http, http_status_from_errno(r), "%s", error_message(error, r));
}

const char *http_query_parameter(struct MHD_Connection *http, const char *name) {
        return MHD_lookup_connection_value(http, MHD_GET_ARGUMENT_KIND, name);
}

bool http_query_flag(struct MHD_Connection *http, const char *name) {
        const char *value = NULL;

        if (MHD_lookup_connection_value_n(http, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value,
                                          NULL) != MHD_YES)
                return false;
        return !value || TEXT_IS_ANY_OF(value, "1", "t", "T", "true", "TRUE", "True");
}

int http_query_number(struct MHD_Connection *http, const char *name, int64_t min, int64_t *ret,
                      Error *reterr) {
        const char *text = http_query_parameter(http, name);
        char *end;
        long long value;

        if (!text)
                return 0;
        errno = 0;
        value = strtoll(text, &end, 10);
        if (errno != 0 || end == text || *end != '\0' || value < min)
                return error_setf(reterr, EINVAL, "%s must be a whole number of at least %lld",
                                  name, (long long) min);
        *ret = value;
        return 0;
}

int http_split_container_path(char *path, const char *ret_names[3]) {
        char *next = path;

        for (unsigned i = 0; i < 3; i++) {
                ret_names[i] = strsep(&next, "/");
                if (!ret_names[i] || ret_names[i][0] == '\0')
                        return -EINVAL;
        }
        return next ? -EINVAL : 0;
}

bool http_is_root(struct MHD_Connection *http) {
        const HttpConnection *connection = http_connection_of(http);
        struct ucred peer;
        socklen_t size = sizeof(peer);

        return connection &&
               getsockopt(http_connection_fd(connection), SOL_SOCKET, SO_PEERCRED, &peer, &size) >=
                       0 &&
               (peer.uid == 0 || peer.uid == geteuid());
}

bool http_require_root(struct MHD_Connection *http, enum MHD_Result *ret) {
        if (http_is_root(http))
                return true;
        *ret = http_reply_error(http, MHD_HTTP_FORBIDDEN, "only root may send this request");
        return false;
}

enum MHD_Result http_reply_text_consume(struct MHD_Connection *http, const char *type, char *text) {
        return queue_reply_consume(http, MHD_HTTP_OK, type, NULL, text);
}

enum MHD_Result http_reply_json_consume(struct MHD_Connection *http, char *json) {
        return http_reply_text_consume(http, "application/json", json);
}

enum MHD_Result http_reply_unknown_path(struct MHD_Connection *http) {
        return http_reply_error(http, MHD_HTTP_NOT_FOUND, "unknown path");
}

enum MHD_Result http_reply_method_not_allowed(struct MHD_Connection *http, const char *allowed,
                                              const char *path) {
        char *text = text_format("%s takes the method %s only\n", path, allowed);

        if (!text)
                return MHD_NO;
        return queue_reply_consume(http, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", allowed, text);
}

unsigned http_status_from_errno(int r) {
        switch (r) {
        case -ENOENT:
                return MHD_HTTP_NOT_FOUND;
        case -EINVAL:
                return MHD_HTTP_BAD_REQUEST;
        case -EAGAIN:
                return MHD_HTTP_SERVICE_UNAVAILABLE;
        default:
                return MHD_HTTP_INTERNAL_SERVER_ERROR;
        }
}

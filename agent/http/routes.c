/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/http-server-private.h"

#include "common/cleanup.h"

#include <stdarg.h>
#include <sys/socket.h>

/* 'allowed' is the method that the client should have used, or NULL. */
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

enum MHD_Result http_reply_error(struct MHD_Connection *http, unsigned status, const char *format,
                                 ...) {
        cleanup_free char *sentence = NULL;
        char *line;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&sentence, format, ap);
        va_end(ap);
        if (r < 0) {
                sentence = NULL;
                return MHD_NO;
        }
        return queue_reply_consume(http, status, "text/plain", NULL,
                                   asprintf(&line, "%s\n", sentence) < 0 ? NULL : line);
}

const char *http_query_parameter(struct MHD_Connection *http, const char *name) {
        return MHD_lookup_connection_value(http, MHD_GET_ARGUMENT_KIND, name);
}

bool http_query_flag(struct MHD_Connection *http, const char *name) {
        static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" };
        const char *value = NULL;

        if (MHD_lookup_connection_value_n(http, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value,
                                          NULL) != MHD_YES)
                return false;
        if (!value)
                return true;
        for (size_t i = 0; i < N_ELEMENTS(yes); i++)
                if (streq(value, yes[i]))
                        return true;
        return false;
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

bool http_require_root(struct MHD_Connection *http, enum MHD_Result *ret) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (getsockopt(http_connection_of(http)->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0 &&
            (peer.uid == 0 || peer.uid == geteuid()))
                return true;
        *ret = http_reply_error(http, MHD_HTTP_FORBIDDEN, "only root may ask this");
        return false;
}

enum MHD_Result http_reply_json_consume(struct MHD_Connection *http, char *json) {
        return queue_reply_consume(http, MHD_HTTP_OK, "application/json", NULL, json);
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

static enum MHD_Result http_handle_healthz(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        return http_reply_text(http, MHD_HTTP_OK, "text/plain", "ok");
}

static enum MHD_Result http_handle_readyz(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        int r = server->handlers->is_ready(server->userdata, &error);

        if (r < 0)
                return http_reply_error(http, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                                        error_message(&error, r));
        return http_reply_text(http, MHD_HTTP_OK, "text/plain", "ok");
}

static enum MHD_Result http_handle_metrics(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        return queue_reply_consume(http, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                                   NULL, server->handlers->metrics(server->userdata));
}

static enum MHD_Result http_handle_resource_metrics(HttpServer *server, struct MHD_Connection *http,
                                                    const char *rest) {
        return queue_reply_consume(http, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                                   NULL, server->handlers->resource_metrics(server->userdata));
}

/* clang-format off */
static const struct {
        const char *method;
        const char *path;
        bool has_rest; /* more components follow; else the path is the whole of it */
        enum MHD_Result (*handler)(HttpServer *server, struct MHD_Connection *http, const char *rest);
} routes[] = {
        { "GET",    "/healthz",            false, http_handle_healthz         },
        { "GET",    "/readyz",             false, http_handle_readyz          },
        { "GET",    "/pods",               false, http_handle_get_pods      },
        { "GET",    "/events",             false, http_handle_get_events    },
        { "GET",    "/daemonsets",         false, http_handle_get_daemonsets },
        { "POST",   "/daemonsets/",        true,  http_handle_daemonset_action     },
        { "GET",    "/revisions",          false, http_handle_get_revisions },
        { "GET",    "/node",               false, http_handle_get_node      },
        { "GET",    "/configmaps",         false, http_handle_get_config_maps },
        { "GET",    "/secrets",            false, http_handle_get_secrets   },
        { "GET",    "/priorityclasses",    false, http_handle_get_priority_classes },
        { "GET",    "/runtimeclasses",     false, http_handle_get_runtime_classes },
        { "GET",    "/manifests",          false, http_handle_get_manifests },
        { "GET",    "/images",             false, http_handle_get_images    },
        { "POST",   "/images/pull",        false, http_handle_pull_image      },
        { "POST",   "/images/prune",       false, http_handle_prune_images     },
        { "DELETE", "/images/image",       false, http_handle_remove_image },
        { "GET",    "/metrics",            false, http_handle_metrics         },
        { "GET",    "/metrics/resource",   false, http_handle_resource_metrics },
        { "GET",    "/containerLogs/",     true,  http_handle_container_logs      },
        { "GET",    "/exec/",              true,  http_handle_exec      },
        { "DELETE", "/api/v1/namespaces/", true,  http_handle_delete_pod    },
};
/* clang-format on */

static bool route_matches(size_t i, const char *url) {
        return routes[i].has_rest ? strncmp(url, routes[i].path, strlen(routes[i].path)) == 0
                                  : streq(url, routes[i].path);
}

static enum MHD_Result reply_method_not_allowed(struct MHD_Connection *http, const char *allowed,
                                                const char *path) {
        cleanup_free char *sentence = NULL;

        if (asprintf(&sentence, "only %s can be asked of %s\n", allowed, path) < 0) {
                sentence = NULL;
                return MHD_NO;
        }
        return queue_reply_consume(http, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", allowed,
                                   TAKE_PTR(sentence));
}

enum MHD_Result http_route_request(void *userdata, struct MHD_Connection *http, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request) {
        HttpServer *server = userdata;

        if (!http_connection_of(http))
                return MHD_NO; /* no memory when it came */
        for (size_t i = 0; i < N_ELEMENTS(routes); i++) {
                if (!route_matches(i, url))
                        continue;
                if (!streq(method, routes[i].method))
                        return reply_method_not_allowed(http, routes[i].method, routes[i].path);
                return routes[i].handler(server, http, url + strlen(routes[i].path));
        }
        return http_reply_error(http, MHD_HTTP_NOT_FOUND, "there is nothing here");
}

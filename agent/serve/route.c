/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

#include <stdarg.h>
#include <sys/socket.h>

/* 'allowed' is the method that the client should have used, or NULL. */
static enum MHD_Result answer_consume(struct MHD_Connection *http, unsigned status,
                                      const char *type, const char *allowed, char *text_consume) {
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

enum MHD_Result serve_answer(struct MHD_Connection *http, unsigned status, const char *type,
                             const char *text) {
        return answer_consume(http, status, type, NULL, strdup(text));
}

enum MHD_Result serve_refuse(struct MHD_Connection *http, unsigned status, const char *format,
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
        return answer_consume(http, status, "text/plain", NULL,
                              asprintf(&line, "%s\n", sentence) < 0 ? NULL : line);
}

const char *serve_parameter(struct MHD_Connection *http, const char *name) {
        return MHD_lookup_connection_value(http, MHD_GET_ARGUMENT_KIND, name);
}

bool serve_flag(struct MHD_Connection *http, const char *name) {
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

int serve_number(struct MHD_Connection *http, const char *name, int64_t min, int64_t *ret,
                 Error *reterr) {
        const char *text = serve_parameter(http, name);
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

int serve_split_path(char *path, const char *ret_names[3]) {
        char *next = path;

        for (unsigned i = 0; i < 3; i++) {
                ret_names[i] = strsep(&next, "/");
                if (!ret_names[i] || ret_names[i][0] == '\0')
                        return -EINVAL;
        }
        return next ? -EINVAL : 0;
}

bool serve_may_change(struct MHD_Connection *http, enum MHD_Result *ret) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (getsockopt(connection_of(http)->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0 &&
            (peer.uid == 0 || peer.uid == geteuid()))
                return true;
        *ret = serve_refuse(http, MHD_HTTP_FORBIDDEN, "only root may ask this");
        return false;
}

enum MHD_Result serve_answer_json_take(struct MHD_Connection *http, char *json) {
        return answer_consume(http, MHD_HTTP_OK, "application/json", NULL, json);
}

unsigned serve_status_of(int r) {
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

static enum MHD_Result healthz(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return serve_answer(http, MHD_HTTP_OK, "text/plain", "ok");
}

static enum MHD_Result readyz(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        int r = serve->handlers->is_ready(serve->userdata, &error);

        if (r < 0)
                return serve_refuse(http, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                                    error_message(&error, r));
        return serve_answer(http, MHD_HTTP_OK, "text/plain", "ok");
}

static enum MHD_Result metrics(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return answer_consume(http, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", NULL,
                              serve->handlers->metrics(serve->userdata));
}

static enum MHD_Result resource_metrics(Serve *serve, struct MHD_Connection *http,
                                        const char *rest) {
        return answer_consume(http, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", NULL,
                              serve->handlers->resource_metrics(serve->userdata));
}

/* clang-format off */
static const struct {
        const char *method;
        const char *path;
        bool has_rest; /* more components follow; else the path is the whole of it */
        enum MHD_Result (*answer)(Serve *serve, struct MHD_Connection *http, const char *rest);
} routes[] = {
        { "GET",    "/healthz",            false, healthz         },
        { "GET",    "/readyz",             false, readyz          },
        { "GET",    "/pods",               false, serve_pods      },
        { "GET",    "/events",             false, serve_events    },
        { "GET",    "/daemonsets",         false, serve_daemonsets },
        { "POST",   "/daemonsets/",        true,  serve_order     },
        { "GET",    "/revisions",          false, serve_revisions },
        { "GET",    "/node",               false, serve_node      },
        { "GET",    "/configmaps",         false, serve_config_maps },
        { "GET",    "/secrets",            false, serve_secrets   },
        { "GET",    "/priorityclasses",    false, serve_priority_classes },
        { "GET",    "/runtimeclasses",     false, serve_runtime_classes },
        { "GET",    "/manifests",          false, serve_manifests },
        { "GET",    "/images",             false, serve_images    },
        { "POST",   "/images/pull",        false, serve_pull      },
        { "POST",   "/images/prune",       false, serve_prune     },
        { "DELETE", "/images/image",       false, serve_remove_image },
        { "GET",    "/metrics",            false, metrics         },
        { "GET",    "/metrics/resource",   false, resource_metrics },
        { "GET",    "/containerLogs/",     true,  serve_logs      },
        { "GET",    "/exec/",              true,  serve_exec      },
        { "DELETE", "/api/v1/namespaces/", true,  serve_delete    },
};
/* clang-format on */

static bool matches(size_t i, const char *url) {
        return routes[i].has_rest ? strncmp(url, routes[i].path, strlen(routes[i].path)) == 0
                                  : streq(url, routes[i].path);
}

static enum MHD_Result refuse_method(struct MHD_Connection *http, const char *allowed,
                                     const char *path) {
        cleanup_free char *sentence = NULL;

        if (asprintf(&sentence, "only %s can be asked of %s\n", allowed, path) < 0) {
                sentence = NULL;
                return MHD_NO;
        }
        return answer_consume(http, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", allowed,
                              TAKE_PTR(sentence));
}

enum MHD_Result serve_route(void *userdata, struct MHD_Connection *http, const char *url,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_size, void **request) {
        Serve *serve = userdata;

        if (!connection_of(http))
                return MHD_NO; /* no memory when it came */
        for (size_t i = 0; i < N_ELEMENTS(routes); i++) {
                if (!matches(i, url))
                        continue;
                if (!streq(method, routes[i].method))
                        return refuse_method(http, routes[i].method, routes[i].path);
                return routes[i].answer(serve, http, url + strlen(routes[i].path));
        }
        return serve_refuse(http, MHD_HTTP_NOT_FOUND, "there is nothing here");
}

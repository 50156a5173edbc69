/* SPDX-License-Identifier: Apache-2.0 */

/* The table of routes, with the handlers that need only one line. */

#include "agent/http/handlers.h"
#include "agent/http/http-connection.h"
#include "agent/http/http-server.h"
#include "agent/http/serve-access.h"
#include "agent/model/openapi.h"
#include "common/cleanup.h"

static const char prometheus_type[] = "text/plain; version=0.0.4; charset=utf-8";

static enum MHD_Result http_handle_healthz(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        return http_reply_text(http, MHD_HTTP_OK, "text/plain", "ok");
}

static enum MHD_Result http_handle_readyz(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        int r = http_handlers_of(server)->is_ready(http_userdata_of(server), &error);

        if (r < 0)
                return http_reply_error(http, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                                        error_message(&error, r));
        return http_reply_text(http, MHD_HTTP_OK, "text/plain", "ok");
}

static enum MHD_Result http_handle_metrics(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        return http_reply_text_consume(http, prometheus_type,
                                       http_handlers_of(server)->metrics(http_userdata_of(server)));
}

static enum MHD_Result http_handle_resource_metrics(HttpServer *server, struct MHD_Connection *http,
                                                    const char *rest) {
        return http_reply_text_consume(
                http, prometheus_type,
                http_handlers_of(server)->resource_metrics(http_userdata_of(server)));
}

static enum MHD_Result http_handle_cadvisor_metrics(HttpServer *server, struct MHD_Connection *http,
                                                    const char *rest) {
        return http_reply_text_consume(
                http, prometheus_type,
                http_handlers_of(server)->cadvisor_metrics(http_userdata_of(server)));
}

static enum MHD_Result http_handle_probe_metrics(HttpServer *server, struct MHD_Connection *http,
                                                 const char *rest) {
        return http_reply_text_consume(
                http, prometheus_type,
                http_handlers_of(server)->probe_metrics(http_userdata_of(server)));
}

static enum MHD_Result http_handle_stats_summary(HttpServer *server, struct MHD_Connection *http,
                                                 const char *rest) {
        return http_reply_json_consume(http, http_handlers_of(server)->stats_summary(
                                                     http_userdata_of(server),
                                                     http_query_flag(http, "only_cpu_and_memory")));
}

static enum MHD_Result http_handle_running_pods(HttpServer *server, struct MHD_Connection *http,
                                                const char *rest) {
        return http_reply_json_consume(
                http, http_handlers_of(server)->running_pods(http_userdata_of(server)));
}

static enum MHD_Result http_handle_configuration(HttpServer *server, struct MHD_Connection *http,
                                                 const char *rest) {
        return http_reply_json_consume(
                http, http_handlers_of(server)->configuration(http_userdata_of(server)));
}

static enum MHD_Result http_handle_schemas(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        return http_reply_json_consume(http, openapi_schemas_to_json());
}

/* The users that may use a route in addition to root and the socket's group; the handlers check for
 * those two. */
typedef enum RouteAccess {
        ROUTE_LOCAL,   /* no client of mainstay-api */
        ROUTE_CLIENT,  /* clients that may use this path of the kubelet with this method */
        ROUTE_SESSION, /* clients that may create something with it */
        ROUTE_ALONE,   /* the same, but only if the node has not joined an API server */
        ROUTE_OPEN,    /* mainstay-api itself: it grants nothing */
} RouteAccess;

/* clang-format off */
static const struct {
        const char *method;
        const char *path;
        bool has_rest; /* more components may follow the path */
        RouteAccess access;
        enum MHD_Result (*handler)(HttpServer *server, struct MHD_Connection *http, const char *rest);
} routes[] = {
        { "GET",    "/healthz",             false, ROUTE_CLIENT,  http_handle_healthz                 },
        { "GET",    "/readyz",              false, ROUTE_CLIENT,  http_handle_readyz                  },
        { "GET",    "/pods",                false, ROUTE_CLIENT,  http_handle_get_pods                },
        { "GET",    "/events",              false, ROUTE_ALONE,   http_handle_get_events              },
        { "GET",    "/daemonsets",          false, ROUTE_ALONE,   http_handle_get_daemonsets          },
        { "POST",   "/daemonsets/",         true,  ROUTE_ALONE,   http_handle_daemonset_action        },
        { "GET",    "/revisions",           false, ROUTE_ALONE,   http_handle_get_revisions           },
        { "GET",    "/node",                false, ROUTE_ALONE,   http_handle_get_node                },
        { "GET",    "/configmaps",          false, ROUTE_ALONE,   http_handle_get_config_maps         },
        { "GET",    "/secrets",             false, ROUTE_ALONE,   http_handle_get_secrets             },
        { "GET",    "/priorityclasses",     false, ROUTE_ALONE,   http_handle_get_priority_classes    },
        { "GET",    "/runtimeclasses",      false, ROUTE_ALONE,   http_handle_get_runtime_classes     },
        { "GET",    "/manifests",           false, ROUTE_LOCAL,   http_handle_get_manifests           },
        { "GET",    "/images",              false, ROUTE_LOCAL,   http_handle_get_images              },
        { "POST",   "/images/pull",         false, ROUTE_LOCAL,   http_handle_pull_image              },
        { "POST",   "/images/prune",        false, ROUTE_LOCAL,   http_handle_prune_images            },
        { "DELETE", "/images/image",        false, ROUTE_LOCAL,   http_handle_remove_image            },
        { "GET",    "/metrics",             false, ROUTE_CLIENT,  http_handle_metrics                 },
        { "GET",    "/metrics/resource",    false, ROUTE_CLIENT,  http_handle_resource_metrics        },
        { "GET",    "/metrics/cadvisor",    false, ROUTE_CLIENT,  http_handle_cadvisor_metrics        },
        { "GET",    "/metrics/probes",      false, ROUTE_CLIENT,  http_handle_probe_metrics           },
        { "GET",    "/stats/summary",       false, ROUTE_CLIENT,  http_handle_stats_summary           },
        { "POST",   "/stats/summary",       false, ROUTE_CLIENT,  http_handle_stats_summary           },
        { "GET",    "/runningpods",         false, ROUTE_CLIENT,  http_handle_running_pods            },
        { "GET",    "/schemas",             false, ROUTE_ALONE,   http_handle_schemas                 },
        { "GET",    "/configz",             false, ROUTE_CLIENT,  http_handle_configuration           },
        { "GET",    "/containerLogs/",      true,  ROUTE_CLIENT,  http_handle_container_logs          },
        { "GET",    "/portForward/",        true,  ROUTE_SESSION, http_handle_port_forward            },
        { "GET",    "/logs/",               true,  ROUTE_CLIENT,  http_handle_system_logs             },
        { "GET",    "/nodeapi/settings",    false, ROUTE_OPEN,    http_handle_node_api_settings       },
        { "GET",    "/nodeapi/signer",      false, ROUTE_OPEN,    http_handle_connect_signer          },
        { "GET",    "/nodeapi/access",      false, ROUTE_OPEN,    http_handle_client_access           },
        { "GET",    "/exec/",               true,  ROUTE_SESSION, http_handle_exec                    },
        { "GET",    "/attach/",             true,  ROUTE_SESSION, http_handle_attach                  },
        { "DELETE", "/api/v1/namespaces/",  true,  ROUTE_ALONE,   http_handle_delete_pod              },
        { "POST",   "/api/v1/namespaces/",  true,  ROUTE_ALONE,   http_handle_add_ephemeral_container },
        { "POST",   "/kubeconfig",          false, ROUTE_LOCAL,   http_handle_make_kubeconfig         },
        { "GET",    "/identity",            false, ROUTE_LOCAL,   http_handle_get_identity            },
        { "POST",   "/identity",            false, ROUTE_LOCAL,   http_handle_change_identity         },
        { "GET",    "/encryptedsecrets",    false, ROUTE_LOCAL,   http_handle_get_encrypted_secrets   },
        { "GET",    "/debug/configuration", false, ROUTE_LOCAL,   http_handle_get_whole_configuration },
        { "GET",    "/debug/dump",          false, ROUTE_LOCAL,   http_handle_get_dump                },
        { "GET",    "/debug/loglevel",      false, ROUTE_LOCAL,   http_handle_get_log_level           },
        { "PUT",    "/debug/loglevel",      false, ROUTE_LOCAL,   http_handle_set_log_level           },
};
/* clang-format on */

static bool route_matches(size_t i, const char *url) {
        return routes[i].has_rest ? strncmp(url, routes[i].path, strlen(routes[i].path)) == 0
                                  : streq(url, routes[i].path);
}

/* libmicrohttpd also calls this once before the request is complete. */
static bool is_request_complete(struct MHD_Connection *http, size_t *upload_size, void **request) {
        bool is_first = !*request;

        *request = http_connection_of(http);
        if (is_first)
                return false;
        if (*upload_size == 0)
                return true;
        *upload_size = 0; /* no route accepts a body */
        return false;
}

static bool may_use_route(HttpServer *server, struct MHD_Connection *http, size_t i,
                          const char *url, enum MHD_Result *ret) {
        RouteAccess access = routes[i].access;

        if (access == ROUTE_OPEN)
                return true;
        if (access == ROUTE_LOCAL || (access == ROUTE_ALONE && !http_is_alone(server))) {
                *ret = http_reply_error(http, MHD_HTTP_FORBIDDEN,
                                        "no client of mainstay-api may send this request");
                return false;
        }
        return http_check_access(server, http, routes[i].method, url, access == ROUTE_SESSION,
                                 ret) == HTTP_ACCESS_GRANTED;
}

static enum MHD_Result run_route(HttpServer *server, struct MHD_Connection *http, size_t i,
                                 const char *url, size_t *upload_size, void **request) {
        enum MHD_Result result = MHD_YES;

        if (http_is_clients_request(server, http)) {
                if (!is_request_complete(http, upload_size, request))
                        return MHD_YES;
                if (!may_use_route(server, http, i, url, &result))
                        return result;
        }
        return routes[i].handler(server, http, url + strlen(routes[i].path));
}

enum MHD_Result http_route_request(void *userdata, struct MHD_Connection *http, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request) {
        HttpServer *server = userdata;
        const char *path = NULL;
        char allowed[32] = "";

        if (!http_connection_of(http))
                return MHD_NO; /* there was no memory for the connection */
        for (size_t i = 0; i < N_ELEMENTS(routes); i++) {
                size_t length = strlen(allowed);

                if (!route_matches(i, url))
                        continue;
                if (streq(method, routes[i].method))
                        return run_route(server, http, i, url, upload_size, request);
                path = routes[i].path;
                (void) snprintf(allowed + length, sizeof(allowed) - length, "%s%s",
                                length > 0 ? ", " : "", routes[i].method);
        }
        return path ? http_reply_method_not_allowed(http, allowed, path)
                    : http_reply_unknown_path(http);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The table of routes, with the handlers of one line. */

#include "agent/http/handlers.h"
#include "agent/http/http-connection.h"
#include "agent/http/http-server.h"
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

/* clang-format off */
static const struct {
        const char *method;
        const char *path;
        bool has_rest; /* more components follow the path */
        bool has_body;
        enum MHD_Result (*handler)(HttpServer *server, struct MHD_Connection *http, const char *rest);
} routes[] = {
        { "GET",    "/healthz",             false, false, http_handle_healthz               },
        { "GET",    "/readyz",              false, false, http_handle_readyz                },
        { "GET",    "/pods",                false, false, http_handle_get_pods              },
        { "GET",    "/events",              false, false, http_handle_get_events            },
        { "GET",    "/daemonsets",          false, false, http_handle_get_daemonsets        },
        { "POST",   "/daemonsets/",         true, false,  http_handle_daemonset_action      },
        { "GET",    "/revisions",           false, false, http_handle_get_revisions         },
        { "GET",    "/node",                false, false, http_handle_get_node              },
        { "GET",    "/configmaps",          false, false, http_handle_get_config_maps       },
        { "GET",    "/secrets",             false, false, http_handle_get_secrets           },
        { "GET",    "/priorityclasses",     false, false, http_handle_get_priority_classes  },
        { "GET",    "/runtimeclasses",      false, false, http_handle_get_runtime_classes   },
        { "GET",    "/manifests",           false, false, http_handle_get_manifests         },
        { "GET",    "/images",              false, false, http_handle_get_images            },
        { "POST",   "/images/pull",         false, false, http_handle_pull_image            },
        { "POST",   "/images/prune",        false, false, http_handle_prune_images          },
        { "DELETE", "/images/image",        false, false, http_handle_remove_image          },
        { "GET",    "/metrics",             false, false, http_handle_metrics               },
        { "GET",    "/metrics/resource",    false, false, http_handle_resource_metrics      },
        { "GET",    "/metrics/cadvisor",    false, false, http_handle_cadvisor_metrics      },
        { "GET",    "/metrics/probes",      false, false, http_handle_probe_metrics         },
        { "GET",    "/stats/summary",       false, false, http_handle_stats_summary         },
        { "GET",    "/runningpods",         false, false, http_handle_running_pods          },
        { "GET",    "/schemas",             false, false, http_handle_schemas               },
        { "GET",    "/configz",             false, false, http_handle_configuration         },
        { "GET",    "/containerLogs/",      true, false,  http_handle_container_logs        },
        { "GET",    "/portForward/",        true,  false, http_handle_port_forward          },
        { "GET",    "/logs/",               true,  false, http_handle_system_logs           },
        { "GET",    "/nodeapi/settings",    false, false, http_handle_node_api_settings     },
        { "POST",   "/nodeapi/tokenreview", false, true,  http_handle_token_review          },
        { "POST",   "/nodeapi/accessreview", false, true, http_handle_access_review         },
        { "GET",    "/exec/",               true, false,  http_handle_exec                  },
        { "GET",    "/attach/",             true, false,  http_handle_attach                },
        { "DELETE", "/api/v1/namespaces/",  true, false,  http_handle_delete_pod            },
        { "POST",   "/api/v1/namespaces/",  true, false,  http_handle_add_ephemeral_container },
        { "POST",   "/kubeconfig",          false, false, http_handle_make_kubeconfig       },
        { "GET",    "/debug/dump",          false, false, http_handle_get_dump              },
        { "GET",    "/debug/loglevel",      false, false, http_handle_get_log_level         },
        { "PUT",    "/debug/loglevel",      false, false, http_handle_set_log_level         },
};
/* clang-format on */

static bool route_matches(size_t i, const char *url) {
        return routes[i].has_rest ? strncmp(url, routes[i].path, strlen(routes[i].path)) == 0
                                  : streq(url, routes[i].path);
}

/* libmicrohttpd calls once without the body, once for each piece, and once at its end. */
static bool is_body_complete(struct MHD_Connection *http, const char *upload, size_t *upload_size,
                             void **request, enum MHD_Result *ret) {
        HttpConnection *connection = http_connection_of(http);

        *ret = MHD_YES;
        if (!*request) {
                *request = connection;
                return false;
        }
        if (*upload_size == 0)
                return true;
        if (http_connection_append_body(connection, upload, *upload_size) < 0)
                *ret = MHD_NO;
        *upload_size = 0;
        return false;
}

enum MHD_Result http_route_request(void *userdata, struct MHD_Connection *http, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request) {
        HttpServer *server = userdata;
        const char *path = NULL;
        enum MHD_Result result;
        char allowed[32] = "";

        if (!http_connection_of(http))
                return MHD_NO; /* there was no memory for the connection */
        for (size_t i = 0; i < N_ELEMENTS(routes); i++) {
                size_t length = strlen(allowed);

                if (!route_matches(i, url))
                        continue;
                if (streq(method, routes[i].method) && routes[i].has_body &&
                    !is_body_complete(http, upload, upload_size, request, &result))
                        return result;
                if (streq(method, routes[i].method))
                        return routes[i].handler(server, http, url + strlen(routes[i].path));
                path = routes[i].path;
                (void) snprintf(allowed + length, sizeof(allowed) - length, "%s%s",
                                length > 0 ? ", " : "", routes[i].method);
        }
        return path ? http_reply_method_not_allowed(http, allowed, path)
                    : http_reply_unknown_path(http);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* POST /api/v1/namespaces/<namespace>/pods/<pod>/ephemeralcontainers?container=<JSON>: adds an
 * ephemeral container to a running pod. The API server's subresource replaces the whole list; here
 * one container is added. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"

#include "common/cleanup.h"
#include "common/text.h"

/* Splits "<namespace>/pods/<pod>/ephemeralcontainers" in place. */
static int split_ephemeral_path(char *path, const char **ret_namespace, const char **ret_pod) {
        char *rest = path;
        const char *namespace = strsep(&rest, "/"), *pods = strsep(&rest, "/");
        const char *pod = strsep(&rest, "/"), *subresource = strsep(&rest, "/");

        if (!subresource || !*pod || !*namespace || !streq(pods, "pods") ||
            !streq(subresource, "ephemeralcontainers") || rest)
                return -EINVAL;
        *ret_namespace = namespace;
        *ret_pod = pod;
        return 0;
}

enum MHD_Result http_handle_add_ephemeral_container(HttpServer *server, struct MHD_Connection *http,
                                                    const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *path = strdup(rest), *name = NULL;
        const char *namespace, *pod, *container = http_query_parameter(http, "container");
        enum MHD_Result result;
        int r;

        if (!http_require_writer(server, http, &result))
                return result;
        if (!path)
                return MHD_NO;
        if (split_ephemeral_path(path, &namespace, &pod) < 0)
                return http_reply_unknown_path(http);
        if (!container)
                return http_reply_error(http, MHD_HTTP_BAD_REQUEST,
                                        "the parameter 'container' is required");
        r = http_handlers_of(server)->add_ephemeral_container(http_userdata_of(server), namespace,
                                                              pod, container, &name, &error);
        if (r < 0)
                return http_reply_error(http, http_status_of_error(r), "%s",
                                        error_message(&error, r));
        /* A name is a DNS label, so nothing in it needs to be escaped. */
        return http_reply_json_consume(http, text_format("{\"name\":\"%s\"}\n", name));
}

/* SPDX-License-Identifier: Apache-2.0 */

/* DELETE /api/v1/namespaces/<namespace>/pods/<pod>?gracePeriodSeconds=<n>, as in an API server. A
 * static pod is stopped within its grace period, and starts again if its manifest still exists. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"

#include "common/cleanup.h"

static const char status_success[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                     "\"status\":\"Success\"}\n";

/* Splits "<namespace>/pods/<pod>" in place. */
static int split_pod_path(char *path, const char **ret_namespace, const char **ret_pod) {
        char *rest = path;
        const char *namespace = strsep(&rest, "/"), *pods = strsep(&rest, "/");
        const char *pod = strsep(&rest, "/");

        if (!pod || !*pod || !*namespace || !streq(pods, "pods") || rest)
                return -EINVAL;
        *ret_namespace = namespace;
        *ret_pod = pod;
        return 0;
}

enum MHD_Result http_handle_delete_pod(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *path = strdup(rest);
        const char *namespace, *pod;
        int64_t grace_seconds = -1;
        enum MHD_Result result;
        int r;

        if (!http_require_writer(server, http, &result))
                return result;
        if (!path)
                return MHD_NO;
        if (split_pod_path(path, &namespace, &pod) < 0)
                return http_reply_unknown_path(http);
        r = http_query_number(http, "gracePeriodSeconds", 0, &grace_seconds, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        r = http_handlers_of(server)->delete_pod(http_userdata_of(server), namespace, pod,
                                                 grace_seconds, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return http_reply_text(http, MHD_HTTP_OK, "application/json", status_success);
}

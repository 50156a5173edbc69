/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

/* DELETE /api/v1/namespaces/<namespace>/pods/<pod>?gracePeriodSeconds=<n>, as the API server has
 * it: a pod of the manifest directory ends, and begins anew. */

static const char success[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                              "\"status\":\"Success\"}\n";

/* Cuts "<namespace>/pods/<pod>" apart in place. */
static int split_path(char *path, const char **ret_namespace, const char **ret_pod) {
        char *rest = path;
        const char *namespace = strsep(&rest, "/"), *pods = strsep(&rest, "/");
        const char *pod = strsep(&rest, "/");

        if (!pod || !*pod || !*namespace || !streq(pods, "pods") || rest)
                return -EINVAL;
        *ret_namespace = namespace;
        *ret_pod = pod;
        return 0;
}

enum MHD_Result serve_delete(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *path = strdup(rest);
        const char *namespace, *pod;
        int64_t grace_seconds = -1;
        enum MHD_Result result;
        int r;

        if (!serve_may_change(http, &result))
                return result;
        if (!path)
                return MHD_NO;
        if (split_path(path, &namespace, &pod) < 0)
                return serve_refuse(http, MHD_HTTP_NOT_FOUND, "there is nothing here");
        r = serve_number(http, "gracePeriodSeconds", 0, &grace_seconds, &error);
        if (r >= 0)
                r = serve->handlers->delete_pod(serve->userdata, namespace, pod, grace_seconds,
                                                &error);
        if (r < 0)
                return serve_refuse(http, serve_status_of(r), "%s", error_message(&error, r));
        return serve_answer(http, MHD_HTTP_OK, "application/json", success);
}

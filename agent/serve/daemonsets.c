/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

/* GET /daemonsets, /revisions, /node; POST /daemonsets/<namespace>/<name>/<verb>?revision=<n>. */

enum MHD_Result serve_daemonsets(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return serve_answer_json_take(http, serve->handlers->daemonsets(serve->userdata));
}

enum MHD_Result serve_revisions(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return serve_answer_json_take(http, serve->handlers->revisions(serve->userdata));
}

enum MHD_Result serve_node(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return serve_answer_json_take(http, serve->handlers->node(serve->userdata));
}

static bool is_verb(const char *word) {
        static const char *const verbs[] = { "undo", "restart", "delete", "orphan" };

        for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
                if (streq(verbs[i], word))
                        return true;
        return false;
}

static enum MHD_Result order(Serve *serve, struct MHD_Connection *http, const char *namespace,
                             const char *name, const char *verb) {
        cleanup_error Error error = ERROR_NULL;
        int64_t revision = 0;
        int r = serve_number(http, "revision", 0, &revision, &error);

        if (r >= 0)
                r = serve->handlers->order_daemonset(serve->userdata, namespace, name, verb,
                                                     revision, &error);
        if (r < 0)
                return serve_refuse(http, serve_status_of(r), "%s", error_message(&error, r));
        return serve_answer(http, MHD_HTTP_OK, "text/plain", r > 0 ? "unchanged\n" : "done\n");
}

enum MHD_Result serve_order(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_free char *path = strdup(rest);
        char *words = path;
        const char *namespace = words ? strsep(&words, "/") : NULL;
        const char *name = words ? strsep(&words, "/") : NULL;
        const char *verb = words ? strsep(&words, "/") : NULL;
        enum MHD_Result result;

        if (!path)
                return MHD_NO;
        if (!serve_may_change(http, &result))
                return result;
        if (!verb || words || !is_verb(verb))
                return serve_refuse(http, MHD_HTTP_NOT_FOUND, "there is nothing here");
        return order(serve, http, namespace, name, verb);
}

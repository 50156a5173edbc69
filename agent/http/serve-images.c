/* SPDX-License-Identifier: Apache-2.0 */

/* /images: the list, and pull, remove and prune. A long action is only started here; the list shows
 * its progress. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"

#include "common/cleanup.h"

static unsigned http_status_of_image_error(int r) {
        static const struct {
                int r;
                unsigned status;
        } rows[] = {
                { -ENOENT, MHD_HTTP_NOT_FOUND },
                { -EINVAL, MHD_HTTP_BAD_REQUEST },
                { -EBUSY, MHD_HTTP_CONFLICT },
        };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                if (rows[i].r == r)
                        return rows[i].status;
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

enum MHD_Result http_handle_get_images(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest) {
        cleanup_free char *json = http_handlers_of(server)->images(http_userdata_of(server));

        return json ? http_reply_text(http, MHD_HTTP_OK, "application/json", json) : MHD_NO;
}

static enum MHD_Result run_image_action(HttpServer *server, struct MHD_Connection *http,
                                        int (*handler)(void *userdata, const char *image,
                                                       Error *reterr)) {
        const char *image = http_query_parameter(http, "image");
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        char answer[64];
        int r;

        if (!http_require_root(http, &result))
                return result;
        r = handler(http_userdata_of(server), strna(image), &error);
        if (r < 0)
                return http_reply_error(http, http_status_of_image_error(r), "%s",
                                        error_message(&error, r));
        (void) snprintf(answer, sizeof(answer), "{\"count\":%d}\n", r);
        return http_reply_text(http, MHD_HTTP_OK, "application/json", answer);
}

enum MHD_Result http_handle_pull_image(HttpServer *server, struct MHD_Connection *http,
                                       const char *rest) {
        return run_image_action(server, http, http_handlers_of(server)->pull_image);
}

enum MHD_Result http_handle_remove_image(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest) {
        return run_image_action(server, http, http_handlers_of(server)->remove_image);
}

enum MHD_Result http_handle_prune_images(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest) {
        return run_image_action(server, http, http_handlers_of(server)->prune_images);
}

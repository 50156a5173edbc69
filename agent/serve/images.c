/* SPDX-License-Identifier: Apache-2.0 */

/* /images: the list, and what a person may ask to be done with it. Work that takes long is begun
 * here, and how it goes is in the list. */

#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

static unsigned status_of(int r) {
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

enum MHD_Result serve_images(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_free char *json = serve->handlers->images(serve->userdata);

        return json ? serve_answer(http, MHD_HTTP_OK, "application/json", json) : MHD_NO;
}

static enum MHD_Result change(Serve *serve, struct MHD_Connection *http,
                              int (*handler)(void *userdata, const char *image, Error *reterr)) {
        const char *image = serve_parameter(http, "image");
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        char answer[64];
        int r;

        if (!serve_may_change(http, &result))
                return result;
        r = handler(serve->userdata, strna(image), &error);
        if (r < 0)
                return serve_refuse(http, status_of(r), "%s", error_message(&error, r));
        (void) snprintf(answer, sizeof(answer), "{\"count\":%d}\n", r);
        return serve_answer(http, MHD_HTTP_OK, "application/json", answer);
}

enum MHD_Result serve_pull(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return change(serve, http, serve->handlers->pull_image);
}

enum MHD_Result serve_remove_image(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return change(serve, http, serve->handlers->remove_image);
}

enum MHD_Result serve_prune(Serve *serve, struct MHD_Connection *http, const char *rest) {
        return change(serve, http, serve->handlers->prune_images);
}

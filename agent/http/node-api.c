/* SPDX-License-Identifier: Apache-2.0 */

/* /nodeapi/…, for mainstay-api only: its settings, and reviews by the API server, which only the
 * agent can ask. A review is passed on as it is; its reply is a stream of one piece. */

#include "agent/http/handlers.h"
#include "agent/http/http-connection.h"
#include "agent/http/http-server.h"
#include "agent/http/stream-text.h"
#include "common/cleanup.h"

struct HttpReview {
        HttpServer *server;
        ResponseStream *stream;
        void *request; /* of the agent; NULL: it is done */
        char *reply;
        size_t sent;
};

static ssize_t read_review(void *source, char *buffer, size_t size) {
        HttpReview *review = source;
        size_t n;

        if (review->request)
                return 0;
        n = MIN(size, strlen(strna(review->reply)) - review->sent);
        if (n == 0)
                return -ENODATA;
        memcpy(buffer, review->reply + review->sent, n);
        review->sent += n;
        return (ssize_t) n;
}

static void review_free(void *source) {
        HttpReview *review = source;

        if (review->request)
                http_handlers_of(review->server)->cancel_review(review->request);
        free(review->reply);
        free(review);
}

static const ResponseStreamKind review_kind = { "application/json", false, read_review,
                                                review_free };

void http_review_done(HttpReview *review, char *json_consume) {
        review->request = NULL;
        review->reply = json_consume;
        response_stream_wake(review->stream);
}

static enum MHD_Result handle_api_review(HttpServer *server, struct MHD_Connection *http,
                                         HttpReviewKind kind) {
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        HttpReview *review;
        int r;

        if (!http_require_api_peer(server, http, &result))
                return result;
        review = calloc(1, sizeof(*review));
        if (!review)
                return MHD_NO;
        review->server = server;
        r = http_handlers_of(server)->start_review(http_userdata_of(server), kind,
                                                   http_connection_body(http_connection_of(http)),
                                                   review, &review->request, &error);
        if (r >= 0)
                return response_stream_start(http_streams_of(server), http, &review_kind, review,
                                             &review->stream);
        review_free(review);
        return http_reply_errno(http, r, &error);
}

enum MHD_Result http_handle_token_review(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest) {
        return handle_api_review(server, http, HTTP_TOKEN_REVIEW);
}

enum MHD_Result http_handle_access_review(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        return handle_api_review(server, http, HTTP_ACCESS_REVIEW);
}

enum MHD_Result http_handle_node_api_settings(HttpServer *server, struct MHD_Connection *http,
                                              const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        char *json = NULL;
        int r;

        if (!http_require_api_peer(server, http, &result))
                return result;
        r = http_handlers_of(server)->node_api_settings(http_userdata_of(server), &json, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return http_reply_json_consume(http, json);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC handler: grpc.health.v1.Health/Check over HTTP/2 without TLS. It needs only field 1 of
 * protocol buffers, as a string (request) and as an integer (response). */

#include "agent/pods/probe/handler-run-private.h"
#include "common/cleanup.h"

enum {
        FRAME_HEADER = 5, /* not compressed, and the length in four bytes */
        RESPONSE_MAX = 4096,
        TAG_SERVICE = 0x0a, /* field 1, a string */
        TAG_STATUS = 0x08,  /* field 1, a varint */
        GRPC_UNIMPLEMENTED = 12,
};

static const char *const health_statuses[] = { "UNKNOWN", "SERVING", "NOT_SERVING",
                                               "SERVICE_UNKNOWN" };

enum {
        STATUS_SERVING = 1,
};

static size_t append_varint(unsigned char *at, size_t value) {
        size_t n = 0;

        for (; value >= 0x80; value >>= 7)
                at[n++] = (unsigned char) (value | 0x80);
        at[n++] = (unsigned char) value;
        return n;
}

/* The frame, in memory that the caller frees, or NULL. */
static char *build_health_request(const char *service, size_t *ret_length) {
        size_t length = strlen(service), n = FRAME_HEADER;
        unsigned char *frame = calloc(1, length + 32);

        if (!frame)
                return NULL;
        if (length > 0) {
                frame[n++] = TAG_SERVICE;
                n += append_varint(frame + n, length);
                memcpy(frame + n, service, length);
                n += length;
        }
        for (unsigned i = 0; i < 4; i++)
                frame[1 + i] = (unsigned char) ((n - FRAME_HEADER) >> (24 - 8 * i));
        *ret_length = n;
        return (char *) frame;
}

/* The status in a frame; an empty message has status 0. -1 if it is malformed. */
static int parse_health_response(const unsigned char *frame, size_t length) {
        if (length == FRAME_HEADER && frame[0] == 0)
                return 0;
        if (length < FRAME_HEADER + 2 || frame[0] != 0 || frame[FRAME_HEADER] != TAG_STATUS ||
            frame[FRAME_HEADER + 1] >= N_ELEMENTS(health_statuses))
                return -1;
        return frame[FRAME_HEADER + 1];
}

static void judge_health_response(HandlerRun *run, const HttpClientResponse *response) {
        long code = response->grpc_status ? strtol(response->grpc_status, NULL, 10) : -1;
        int status = parse_health_response(response->body, response->body_length);

        if (code == GRPC_UNIMPLEMENTED)
                handler_run_finish(run, HANDLER_FAILED,
                                   "error: this server does not implement the grpc health protocol "
                                   "(grpc.health.v1.Health): %s",
                                   strna(response->grpc_message));
        else if (code != 0 && response->grpc_status)
                handler_run_finish(run, HANDLER_FAILED,
                                   "error: health rpc probe failed: code %ld: %s", code,
                                   strna(response->grpc_message));
        else if (code != 0)
                handler_run_finish(
                        run, HANDLER_FAILED,
                        "error: health rpc probe failed: no gRPC status, but HTTP status %ld",
                        response->status);
        else if (status < 0)
                handler_run_finish(run, HANDLER_FAILED,
                                   "error: health rpc probe failed: the response is malformed");
        else if (status != STATUS_SERVING)
                handler_run_finish(run, HANDLER_FAILED, "service unhealthy (responded with \"%s\")",
                                   health_statuses[status]);
        else
                handler_run_finish(run, HANDLER_SUCCEEDED, "service healthy");
}

static void on_health_response(const HttpClientResponse *response, const char *error,
                               void *userdata) {
        HandlerRun *run = userdata;

        run->request = NULL;
        if (response)
                judge_health_response(run, response);
        else
                handler_run_finish(run, HANDLER_FAILED, "error: health rpc probe failed: %s",
                                   error);
}

void handler_begin_grpc(HandlerRun *run) {
        static const char *const headers[] = {
                "Content-Type: application/grpc",
                "TE: trailers",
                ("User-Agent: " HANDLER_USER_AGENT " grpc"),
                "Accept:",
                NULL,
        };
        const GrpcAction *grpc = run->spec.handler->grpc;
        cleanup_free char *url = format_handler_url("http", run->address, grpc->port.value,
                                                    "/grpc.health.v1.Health/Check");
        cleanup_error Error error = ERROR_NULL;
        size_t length = 0;
        cleanup_free char *frame = build_health_request(strna(grpc->service), &length);
        HttpClient *http = handler_run_http_client(run);
        int r;

        if (!http)
                return;
        r = url && frame ? http_client_start(http,
                                             &(HttpClientSpec){ .url = url,
                                                                .headers = headers,
                                                                .body = frame,
                                                                .body_length = length,
                                                                .response_max = RESPONSE_MAX,
                                                                .is_http2 = true },
                                             on_health_response, run, &run->request, &error)
                         : -ENOMEM;
        if (r < 0)
                handler_run_finish_deferred(run, HANDLER_ERROR, "%s", error_message(&error, r));
}

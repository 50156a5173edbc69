/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC handler: grpc.health.v1.Health/Check over HTTP/2 without TLS. */

#include "agent/pods/probe/handler-run-private.h"
#include "common/cleanup.h"
#include "common/protobuf.h"

enum {
        FRAME_HEADER = 5, /* the compression flag, which is 0, and the length in four bytes */
        REQUEST_MAX = 64 * 1024,
        RESPONSE_MAX = 4096,
        GRPC_UNIMPLEMENTED = 12,
};

static const char *const health_statuses[] = { "UNKNOWN", "SERVING", "NOT_SERVING",
                                               "SERVICE_UNKNOWN" };

enum {
        STATUS_SERVING = 1,
};

typedef struct HealthCheckRequest {
        char *service; /* borrowed */
} HealthCheckRequest;

typedef struct HealthCheckResponse {
        int64_t status;
} HealthCheckResponse;

static const ProtobufRow health_request_rows[] = {
        PROTOBUF_FIELD(1, TEXT, HealthCheckRequest, service),
};
static const ProtobufRow health_response_rows[] = {
        PROTOBUF_FIELD(1, NUMBER, HealthCheckResponse, status),
};
static const ProtobufMessage health_request =
        PROTOBUF_TABLE(HealthCheckRequest, health_request_rows);
static const ProtobufMessage health_response =
        PROTOBUF_TABLE(HealthCheckResponse, health_response_rows);

/* Builds the request's frame. 0; -EFBIG; -ENOMEM. */
static int build_health_request(char *service, Buffer *frame) {
        static const char header[FRAME_HEADER];
        int r = buffer_append(frame, header, sizeof(header), sizeof(header));

        if (r >= 0)
                r = protobuf_encode(&health_request, &(HealthCheckRequest){ .service = service },
                                    frame, REQUEST_MAX);
        for (unsigned i = 0; i < 4 && r >= 0; i++)
                frame->data[1 + i] = (char) ((frame->length - FRAME_HEADER) >> (24 - 8 * i));
        return r;
}

/* The status in a frame; an empty message has status 0. -1 if it is malformed. */
static int parse_health_response(const unsigned char *frame, size_t length) {
        HealthCheckResponse response = { 0 };

        if (length < FRAME_HEADER || frame[0] != 0 ||
            protobuf_decode(&health_response, frame + FRAME_HEADER, length - FRAME_HEADER,
                            &response, NULL) < 0 ||
            response.status < 0 || response.status >= (int64_t) N_ELEMENTS(health_statuses))
                return -1;
        return (int) response.status;
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
        cleanup_buffer Buffer frame = { 0 };
        HttpClient *http = handler_run_http_client(run);
        int r;

        if (!http)
                return;
        r = url ? build_health_request(grpc->service, &frame) : -ENOMEM;
        if (r >= 0)
                r = http_client_start(http,
                                      &(HttpClientSpec){ .url = url,
                                                         .headers = headers,
                                                         .body = frame.data,
                                                         .body_length = frame.length,
                                                         .response_max = RESPONSE_MAX,
                                                         .is_http2 = true },
                                      on_health_response, run, &run->request, &error);
        if (r < 0)
                handler_run_finish_deferred(run, HANDLER_ERROR, "%s", error_message(&error, r));
}

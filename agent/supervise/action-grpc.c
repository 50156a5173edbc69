/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1.Health/Check: one small message there, one back, over HTTP/2 without TLS. Of
 * protocol buffers this takes a string with the number 1 and an integer with the number 1. */

#include "agent/supervise/action-internal.h"
#include "common/cleanup.h"

enum {
        FRAME_HEADER = 5, /* not compressed, and the length in four bytes */
        RESPONSE_MAX = 4096,
        TAG_SERVICE = 0x0a, /* field 1, a string */
        TAG_STATUS = 0x08,  /* field 1, a varint */
        GRPC_UNIMPLEMENTED = 12,
};

static const char *const statuses[] = { "UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN" };

enum {
        STATUS_SERVING = 1,
};

static size_t put_varint(unsigned char *at, size_t value) {
        size_t n = 0;

        for (; value >= 0x80; value >>= 7)
                at[n++] = (unsigned char) (value | 0x80);
        at[n++] = (unsigned char) value;
        return n;
}

/* The frame, in memory that the caller frees, or NULL. */
static char *make_frame(const char *service, size_t *ret_length) {
        size_t length = strlen(service), n = FRAME_HEADER;
        unsigned char *frame = calloc(1, length + 32);

        if (!frame)
                return NULL;
        if (length > 0) {
                frame[n++] = TAG_SERVICE;
                n += put_varint(frame + n, length);
                memcpy(frame + n, service, length);
                n += length;
        }
        for (unsigned i = 0; i < 4; i++)
                frame[1 + i] = (unsigned char) ((n - FRAME_HEADER) >> (24 - 8 * i));
        *ret_length = n;
        return (char *) frame;
}

/* The status in a frame: an empty message is that of number 0. -1 where it is none. */
static int read_status(const unsigned char *frame, size_t length) {
        if (length == FRAME_HEADER && frame[0] == 0)
                return 0;
        if (length < FRAME_HEADER + 2 || frame[0] != 0 || frame[FRAME_HEADER] != TAG_STATUS ||
            frame[FRAME_HEADER + 1] >= N_ELEMENTS(statuses))
                return -1;
        return frame[FRAME_HEADER + 1];
}

static void judge(Action *action, const HttpResponse *response) {
        long code = response->grpc_status ? strtol(response->grpc_status, NULL, 10) : -1;
        int status = read_status(response->body, response->body_length);

        if (code == GRPC_UNIMPLEMENTED)
                action_finish(action, ACTION_FAILED,
                              "error: this server does not implement the grpc health protocol "
                              "(grpc.health.v1.Health): %s",
                              strna(response->grpc_message));
        else if (code != 0 && response->grpc_status)
                action_finish(action, ACTION_FAILED, "error: health rpc probe failed: code %ld: %s",
                              code, strna(response->grpc_message));
        else if (code != 0)
                action_finish(action, ACTION_FAILED,
                              "error: health rpc probe failed: no gRPC status, but HTTP status %ld",
                              response->status);
        else if (status < 0)
                action_finish(action, ACTION_FAILED,
                              "error: health rpc probe failed: the answer cannot be read");
        else if (status != STATUS_SERVING)
                action_finish(action, ACTION_FAILED, "service unhealthy (responded with \"%s\")",
                              statuses[status]);
        else
                action_finish(action, ACTION_SUCCEEDED, "service healthy");
}

static void on_answer(const HttpResponse *response, const char *error, void *userdata) {
        Action *action = userdata;

        action->request = NULL;
        if (response)
                judge(action, response);
        else
                action_finish(action, ACTION_FAILED, "error: health rpc probe failed: %s", error);
}

void action_begin_grpc(Action *action) {
        static const char *const headers[] = {
                "Content-Type: application/grpc",
                "TE: trailers",
                ("User-Agent: " ACTION_USER_AGENT " grpc"),
                "Accept:",
                NULL,
        };
        const GrpcAction *grpc = action->spec.handler->grpc;
        cleanup_free char *url = action_url("http", action->address, grpc->port.value,
                                            "/grpc.health.v1.Health/Check");
        cleanup_error Error error = ERROR_NULL;
        size_t length = 0;
        cleanup_free char *frame = make_frame(strna(grpc->service), &length);
        Http *http = action_http(action);
        int r;

        if (!http)
                return;
        r = url && frame ? http_begin(http,
                                      &(HttpSpec){ .url = url,
                                                   .headers = headers,
                                                   .body = frame,
                                                   .body_length = length,
                                                   .response_max = RESPONSE_MAX,
                                                   .is_http2 = true },
                                      on_answer, action, &action->request, &error)
                         : -ENOMEM;
        if (r < 0)
                action_finish_soon(action, ACTION_BROKEN, "%s", error_message(&error, r));
}

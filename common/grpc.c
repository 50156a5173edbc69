/* SPDX-License-Identifier: Apache-2.0 */
#include "common/grpc.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <ctype.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        HEADER_SIZE = 5, /* a message header: a flag and the length */
        READ_SIZE = 16 * 1024,
        HEADER_LIST_MAX = 16 * 1024,
        PATH_MAX_LENGTH = 256,
        OUTBOUND_ACKS_MAX = 64, /* unsent answers to a peer that does not read them */
        OUTBOUND_FRAMES_MAX = 1024,
        OUTPUT_MAX = 1024 * 1024,
        READS_MAX = 16, /* in one turn of the loop */
        USEC_PER_SECOND = 1000000,
};

struct GrpcCall {
        GrpcConnection *connection;
        GrpcCall *next; /* the connection's next call */
        int32_t stream;
        GrpcCallHandlers handlers; /* for a client */
        void *userdata;            /* userdata for the answerer */
        bool is_stream;            /* the answer may have any number of messages */
        bool is_owned;             /* the owner has a pointer to the call */
        bool has_status;           /* the peer's answer has a status: */
        GrpcCode code;
        char *text;
        unsigned http_status;
        bool is_grpc;        /* the content type is gRPC's */
        bool is_post;        /* the method */
        bool is_compressed;  /* a message's flag is set, although compression was not requested */
        bool is_too_large;   /* a message or the path is too large */
        char *path;          /* path of a request */
        uint64_t deadline;   /* UINT64_MAX: none */
        unsigned n_messages; /* received */
        Buffer input;        /* the message that is being received, with its header */
        Buffer output;       /* data to send, and how much of it was sent: */
        size_t sent;
        bool has_trailers; /* a server's answer ends with trailers */
};

struct GrpcConnection {
        int fd;
        nghttp2_session *session;
        bool is_server;
        bool is_over;
        GrpcServerHandlers handlers;
        GrpcCall *calls;
        size_t n_calls;
        Buffer output; /* data that the socket has not accepted */
        uint64_t now;  /* time of the current turn */
};

static const struct {
        GrpcCode code;
        const char *name;
} code_names[] = {
        { GRPC_OK, "OK" },
        { GRPC_CANCELLED, "Canceled" },
        { GRPC_UNKNOWN, "Unknown" },
        { GRPC_INVALID_ARGUMENT, "InvalidArgument" },
        { GRPC_DEADLINE_EXCEEDED, "DeadlineExceeded" },
        { GRPC_NOT_FOUND, "NotFound" },
        { 6, "AlreadyExists" },
        { 7, "PermissionDenied" },
        { GRPC_RESOURCE_EXHAUSTED, "ResourceExhausted" },
        { GRPC_FAILED_PRECONDITION, "FailedPrecondition" },
        { GRPC_ABORTED, "Aborted" },
        { GRPC_OUT_OF_RANGE, "OutOfRange" },
        { GRPC_UNIMPLEMENTED, "Unimplemented" },
        { GRPC_INTERNAL, "Internal" },
        { GRPC_UNAVAILABLE, "Unavailable" },
        { 15, "DataLoss" },
        { 16, "Unauthenticated" },
};

const char *grpc_code_name(GrpcCode code) {
        for (size_t i = 0; i < N_ELEMENTS(code_names); i++)
                if (code_names[i].code == code)
                        return code_names[i].name;
        return "Unknown";
}

/* ---- calls ---- */

static GrpcCall *call_new(GrpcConnection *connection, int32_t stream) {
        GrpcCall *call = calloc(1, sizeof(*call));

        if (!call)
                return NULL;
        call->connection = connection;
        call->stream = stream;
        call->deadline = UINT64_MAX;
        call->next = connection->calls;
        connection->calls = call;
        connection->n_calls++;
        return call;
}

static void call_free(GrpcCall *call) {
        GrpcConnection *connection = call->connection;
        GrpcCall **place = &connection->calls;

        while (*place && *place != call)
                place = &(*place)->next;
        if (*place) {
                *place = call->next;
                connection->n_calls--;
        }
        if (call->stream > 0)
                (void) nghttp2_session_set_stream_user_data(connection->session, call->stream,
                                                            NULL);
        free(call->text);
        free(call->path);
        buffer_done(&call->input);
        buffer_done(&call->output);
        free(call);
}

/* Notifies the owner and frees the call. */
static void call_end(GrpcCall *call, GrpcCode code, const char *text) {
        GrpcConnection *connection = call->connection;
        const GrpcCallHandlers handlers = call->handlers;
        cleanup_free char *copy = strdup(text);
        bool was_owned = call->is_owned;

        if (connection->is_server) {
                if (was_owned)
                        connection->handlers.on_gone(call, connection->handlers.userdata);
                call_free(call);
                return;
        }
        call_free(call);
        if (handlers.on_end)
                handlers.on_end(code, strna(copy), handlers.userdata);
}

static void call_reset(const GrpcCall *call, uint32_t error) {
        (void) nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE, call->stream,
                                         error);
}

void grpc_call_set_userdata(GrpcCall *call, void *userdata) {
        call->userdata = userdata;
}

void *grpc_call_userdata(const GrpcCall *call) {
        return call->userdata;
}

/* ---- messages ---- */

static uint32_t message_length(const char *header) {
        const unsigned char *bytes = (const unsigned char *) header;

        return (uint32_t) bytes[1] << 24 | (uint32_t) bytes[2] << 16 | (uint32_t) bytes[3] << 8 |
               bytes[4];
}

static int frame_message(Buffer *buffer, const void *message, size_t length) {
        const unsigned char header[HEADER_SIZE] = { 0, (unsigned char) (length >> 24),
                                                    (unsigned char) (length >> 16),
                                                    (unsigned char) (length >> 8),
                                                    (unsigned char) length };
        int r;

        if (length > GRPC_MESSAGE_MAX)
                return -EFBIG;
        r = buffer_append(buffer, header, sizeof(header), HEADER_SIZE + GRPC_MESSAGE_MAX);
        if (r >= 0 && length > 0)
                r = buffer_append(buffer, message, length, HEADER_SIZE + GRPC_MESSAGE_MAX);
        return r;
}

/* Whether the message that is being received is complete. */
static bool has_message(const GrpcCall *call) {
        return call->input.length >= HEADER_SIZE &&
               call->input.length == HEADER_SIZE + (size_t) message_length(call->input.data);
}

/* Called only for a client's call. The handler may cancel the call. */
static void deliver_message(GrpcCall *call) {
        const GrpcCallHandlers handlers = call->handlers;
        Buffer message = call->input;

        call->input = (Buffer){ 0 };
        call->n_messages++;
        if (handlers.on_message && (call->is_stream || call->n_messages == 1))
                handlers.on_message(message.data + HEADER_SIZE, message.length - HEADER_SIZE,
                                    handlers.userdata);
        buffer_done(&message);
}

/* A message's length is checked before memory is allocated for it. */
static int check_message_header(GrpcCall *call) {
        if (call->input.length != HEADER_SIZE)
                return 0;
        call->is_compressed = call->input.data[0] != 0;
        call->is_too_large = message_length(call->input.data) > GRPC_MESSAGE_MAX;
        return call->is_compressed || call->is_too_large ? -EFBIG : 0;
}

/* Appends the bytes that belong to the current message to it. Returns their number, or -errno. */
static ssize_t extend_message(GrpcCall *call, const uint8_t *data, size_t length) {
        size_t wanted = HEADER_SIZE, n;
        int r;

        if (call->input.length >= HEADER_SIZE)
                wanted += message_length(call->input.data);
        n = MIN(length, wanted - call->input.length);
        r = buffer_append(&call->input, data, n, HEADER_SIZE + GRPC_MESSAGE_MAX);
        if (r >= 0)
                r = check_message_header(call);
        return r < 0 ? r : (ssize_t) n;
}

static void take_data(const GrpcConnection *connection, int32_t stream, const uint8_t *data,
                      size_t length) {
        while (length > 0) {
                GrpcCall *call = nghttp2_session_get_stream_user_data(connection->session, stream);
                ssize_t n;

                if (!call || call->is_compressed || call->is_too_large)
                        return;
                if (has_message(call)) { /* a request has a single message */
                        call->n_messages = 1;
                        return;
                }
                n = extend_message(call, data, length);
                if (n < 0) {
                        call->is_too_large |= !call->is_compressed;
                        return;
                }
                data += n;
                length -= (size_t) n;
                if (!connection->is_server && has_message(call))
                        deliver_message(call);
        }
}

/* ---- callbacks of nghttp2: input ---- */

static bool is_request(const nghttp2_frame *frame) {
        return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userdata) {
        GrpcConnection *connection = userdata;
        GrpcCall *call;

        if (!connection->is_server || !is_request(frame))
                return 0;
        call = call_new(connection, frame->hd.stream_id);
        if (!call)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
}

/* "100m": at most eight digits and a unit. UINT64_MAX: none, or invalid. */
static uint64_t parse_timeout(const char *text) {
        static const struct {
                char unit;
                uint64_t usec;
        } units[] = {
                { 'H', UINT64_C(3600) * USEC_PER_SECOND },
                { 'M', UINT64_C(60) * USEC_PER_SECOND },
                { 'S', USEC_PER_SECOND },
                { 'm', 1000 },
                { 'u', 1 },
                { 'n', 0 },
        };
        size_t n = strspn(text, "0123456789");

        if (n == 0 || n > 8)
                return UINT64_MAX;
        for (size_t i = 0; i < N_ELEMENTS(units); i++)
                if (text[n] == units[i].unit && text[n + 1] == '\0')
                        return strtoull(text, NULL, 10) * units[i].usec;
        return UINT64_MAX;
}

static void set_timeout(GrpcCall *call, const char *text) {
        uint64_t usec = parse_timeout(text);

        if (usec < UINT64_MAX - call->connection->now)
                call->deadline = call->connection->now + usec;
}

static int hex_value(char c) {
        return isdigit((unsigned char) c)    ? c - '0'
               : isxdigit((unsigned char) c) ? (c | 0x20) - 'a' + 10
                                             : -1;
}

/* Decodes "%0A" in a status message in place; a NUL would become a blank. */
static void percent_decode(char *text) {
        char *to = text;

        for (const char *from = text; *from; from++) {
                if (from[0] == '%' && hex_value(from[1]) >= 0 && hex_value(from[2]) >= 0) {
                        char c = (char) (hex_value(from[1]) * 16 + hex_value(from[2]));

                        if (c == '\0')
                                c = ' ';
                        *to++ = c;
                        from += 2;
                } else
                        *to++ = *from;
        }
        *to = '\0';
}

static void set_grpc_message(GrpcCall *call, const char *value, size_t length) {
        free(call->text);
        call->text = strndup(value, MIN(length, (size_t) GRPC_ERROR_TEXT_MAX));
        if (call->text)
                percent_decode(call->text);
}

static void take_grpc_header(GrpcCall *call, const char *name, const char *value, size_t length) {
        static const char grpc_type[] = "application/grpc";

        if (streq(name, "grpc-status")) {
                call->has_status = true;
                call->code = length < 4 ? (GrpcCode) strtoul(value, NULL, 10) : GRPC_UNKNOWN;
        } else if (streq(name, "grpc-message"))
                set_grpc_message(call, value, length);
        else if (streq(name, ":status"))
                call->http_status = (unsigned) strtoul(value, NULL, 10);
        else if (streq(name, "content-type"))
                call->is_grpc = strncmp(value, grpc_type, strlen(grpc_type)) == 0;
        else if (streq(name, ":method"))
                call->is_post = streq(value, "POST");
        else if (streq(name, "grpc-timeout"))
                set_timeout(call, value);
        else if (streq(name, ":path") && length <= PATH_MAX_LENGTH) {
                free(call->path);
                call->path = strdup(value);
        }
}

/* nghttp2 ends names and values with a NUL, and has checked their characters. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *userdata) {
        GrpcCall *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

        if (call)
                take_grpc_header(call, (const char *) name, (const char *) value, value_length);
        return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                         const uint8_t *data, size_t length, void *userdata) {
        take_data(userdata, stream, data, length);
        return 0;
}

/* ---- complete requests ---- */

static void send_http_error(GrpcCall *call, const char *status, GrpcCode code, const char *text);

static void dispatch_request(GrpcConnection *connection, GrpcCall *call) {
        const GrpcServerHandlers *handlers = &connection->handlers;

        if (call->is_owned || call->has_status)
                return;
        if (!call->is_post)
                send_http_error(call, "405", GRPC_INTERNAL, "the method is not POST");
        else if (!call->is_grpc)
                send_http_error(call, "415", GRPC_INVALID_ARGUMENT,
                                "the content type is not application/grpc");
        else if (!call->path || call->path[0] != '/' || !strchr(call->path + 1, '/'))
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, "malformed method name");
        else if (call->is_too_large)
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED,
                               "grpc: received message larger than max (%zu)", GRPC_MESSAGE_MAX);
        else if (call->is_compressed)
                grpc_call_fail(call, GRPC_UNIMPLEMENTED,
                               "grpc: compressed messages are not supported");
        else if (!has_message(call) || call->n_messages > 0)
                grpc_call_fail(call, GRPC_INTERNAL,
                               "the request does not have exactly one message");
        else {
                Buffer input = call->input;

                call->input = (Buffer){ 0 };
                call->is_owned = true;
                handlers->on_request(call, call->path, input.data + HEADER_SIZE,
                                     input.length - HEADER_SIZE, handlers->userdata);
                buffer_done(&input);
        }
}

/* ---- complete answers ---- */

static GrpcCode code_of_http(unsigned status) {
        switch (status) {
        case 400:
                return GRPC_INTERNAL;
        case 404:
                return GRPC_UNIMPLEMENTED;
        case 429:
        case 502:
        case 503:
        case 504:
                return GRPC_UNAVAILABLE;
        default:
                return GRPC_UNKNOWN;
        }
}

static void finish_answer(GrpcCall *call) {
        if (call->is_too_large)
                call_end(call, GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
        else if (call->is_compressed)
                call_end(call, GRPC_INTERNAL, "the answer is compressed");
        else if (!call->has_status && call->http_status != 200)
                call_end(call, code_of_http(call->http_status), "the answer is not one of gRPC");
        else if (!call->has_status)
                call_end(call, GRPC_INTERNAL, "server closed the stream without sending trailers");
        else if (call->code == GRPC_OK && !call->is_stream && call->n_messages != 1)
                call_end(call, GRPC_INTERNAL, "the answer does not have exactly one message");
        else
                call_end(call, call->code, call->code == GRPC_OK ? "" : strna(call->text));
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata) {
        GrpcConnection *connection = userdata;
        GrpcCall *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

        if (!call || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
                return 0;
        if (call->is_too_large && !connection->is_server)
                call_reset(call, NGHTTP2_CANCEL);
        if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
                /* The message is refused before it has arrived completely. */
                if (connection->is_server && (call->is_too_large || call->is_compressed))
                        dispatch_request(connection, call);
                return 0;
        }
        if (connection->is_server)
                dispatch_request(connection, call);
        else
                finish_answer(call);
        return 0;
}

static GrpcCode code_of_reset(uint32_t error) {
        switch (error) {
        case NGHTTP2_REFUSED_STREAM:
                return GRPC_UNAVAILABLE;
        case NGHTTP2_CANCEL:
                return GRPC_CANCELLED;
        case NGHTTP2_ENHANCE_YOUR_CALM:
        case NGHTTP2_FLOW_CONTROL_ERROR:
                return GRPC_RESOURCE_EXHAUSTED;
        default:
                return GRPC_INTERNAL;
        }
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error,
                           void *userdata) {
        GrpcConnection *connection = userdata;
        GrpcCall *call = nghttp2_session_get_stream_user_data(session, stream);
        char text[96];

        if (!call)
                return 0;
        call->stream = 0; /* it can no longer be reset */
        if (connection->is_server)
                call_end(call, GRPC_CANCELLED, "");
        else if (call->is_too_large)
                finish_answer(call);
        else {
                (void) snprintf(text, sizeof(text), "the stream was reset with error %u", error);
                call_end(call, code_of_reset(error), text);
        }
        return 0;
}

/* ---- output ---- */

static nghttp2_nv header_of(const char *name, const char *value) {
        return (nghttp2_nv){ (uint8_t *) (uintptr_t) name, (uint8_t *) (uintptr_t) value,
                             strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static ssize_t read_output(nghttp2_session *session, int32_t stream, uint8_t *data, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *userdata) {
        GrpcCall *call = nghttp2_session_get_stream_user_data(session, stream);
        size_t n;

        if (!call)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        n = MIN(length, call->output.length - call->sent);
        memcpy(data, call->output.data + call->sent, n);
        call->sent += n;
        if (call->sent < call->output.length)
                return (ssize_t) n;
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        buffer_done(&call->output);
        call->sent = 0;
        if (call->has_trailers) {
                const nghttp2_nv trailer = header_of("grpc-status", "0");

                *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                if (nghttp2_submit_trailer(session, stream, &trailer, 1) < 0)
                        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        return (ssize_t) n;
}

static const nghttp2_data_provider output_provider = { .read_callback = read_output };

/* The answer is queued; the stream ends by itself. */
static void release_answered(GrpcCall *call, int r) {
        call->is_owned = false;
        call->has_status = true;
        call->deadline = UINT64_MAX;
        if (r < 0)
                call_reset(call, NGHTTP2_INTERNAL_ERROR);
}

static void send_http_error(GrpcCall *call, const char *status, GrpcCode code, const char *text) {
        char number[12];

        (void) snprintf(number, sizeof(number), "%d", (int) code);
        const nghttp2_nv headers[] = {
                header_of(":status", status),
                header_of("content-type", "application/grpc"),
                header_of("grpc-status", number),
                header_of("grpc-message", text),
        };

        release_answered(call, nghttp2_submit_response(call->connection->session, call->stream,
                                                       headers, N_ELEMENTS(headers), NULL));
}

/* Encodes bytes that are invalid in a header, and the percent sign, as "%0A". NULL: out of
 * memory. */
static char *percent_encode(const char *text) {
        size_t length = MIN(strlen(text), (size_t) GRPC_ERROR_TEXT_MAX), n = 0;
        char *encoded = malloc(3 * length + 1);

        for (size_t i = 0; encoded && i < length; i++) {
                unsigned char c = (unsigned char) text[i];

                if (c >= 0x20 && c <= 0x7e && c != '%')
                        encoded[n++] = (char) c;
                else
                        n += (size_t) snprintf(encoded + n, 4, "%%%02X", c);
        }
        if (encoded)
                encoded[n] = '\0';
        return encoded;
}

void grpc_call_fail(GrpcCall *call, GrpcCode code, const char *format, ...) {
        cleanup_free char *text = NULL, *encoded = NULL;
        va_list ap;

        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        encoded = text ? percent_encode(text) : NULL;
        send_http_error(call, "200", code, strna(encoded));
}

void grpc_call_reply(GrpcCall *call, const void *message, size_t length) {
        const nghttp2_nv headers[] = {
                header_of(":status", "200"),
                header_of("content-type", "application/grpc"),
        };
        int r = frame_message(&call->output, message, length);

        if (r == -EFBIG) {
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED,
                               "grpc: trying to send message larger than max (%zu vs. %zu)", length,
                               GRPC_MESSAGE_MAX);
                return;
        }
        call->has_trailers = true;
        if (r >= 0)
                r = nghttp2_submit_response(call->connection->session, call->stream, headers,
                                            N_ELEMENTS(headers), &output_provider);
        release_answered(call, r);
}

int grpc_call_start(GrpcConnection *connection, const char *path, const void *message,
                    size_t length, bool is_stream, uint64_t deadline_usec,
                    const GrpcCallHandlers *handlers, GrpcCall **ret) {
        const nghttp2_nv headers[] = {
                header_of(":method", "POST"),
                header_of(":scheme", "http"),
                header_of(":path", path),
                header_of(":authority", "localhost"),
                header_of("te", "trailers"),
                header_of("content-type", "application/grpc"),
                header_of("user-agent", "grpc-c-mainstay/" MAINSTAY_VERSION),
        };
        GrpcCall *call = connection->is_over ? NULL : call_new(connection, 0);
        int32_t stream;

        if (connection->is_over)
                return -ENOTCONN;
        if (!call)
                return -ENOMEM;
        call->is_stream = is_stream;
        call->deadline = deadline_usec;
        call->http_status = 0;
        stream = frame_message(&call->output, message, length) < 0
                         ? -1
                         : nghttp2_submit_request(connection->session, NULL, headers,
                                                  N_ELEMENTS(headers), &output_provider, call);
        if (stream < 0) {
                call_free(call);
                return -ENOMEM;
        }
        call->stream = stream;
        call->handlers = *handlers;
        if (ret)
                *ret = call;
        return 0;
}

void grpc_call_cancel(GrpcCall *call) {
        call->handlers = (GrpcCallHandlers){ 0 };
        call_reset(call, NGHTTP2_CANCEL);
        call_free(call);
}

/* ---- connections ---- */

static int make_session(GrpcConnection *connection) {
        nghttp2_session_callbacks *callbacks = NULL;
        nghttp2_option *option = NULL;
        int r = -1;

        if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
                nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                                        on_begin_headers);
                nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
                nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
                nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
                nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
                nghttp2_option_set_max_outbound_ack(option, OUTBOUND_ACKS_MAX);
                r = connection->is_server
                            ? nghttp2_session_server_new2(&connection->session, callbacks,
                                                          connection, option)
                            : nghttp2_session_client_new2(&connection->session, callbacks,
                                                          connection, option);
        }
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(callbacks);
        return r < 0 ? -ENOMEM : 0;
}

static int submit_settings(const GrpcConnection *connection) {
        const nghttp2_settings_entry settings[] = {
                { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS_MAX },
                { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_MAX },
                { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        };
        size_t n = connection->is_server ? N_ELEMENTS(settings) - 1 : N_ELEMENTS(settings);

        return nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, n) < 0
                       ? -ENOMEM
                       : 0;
}

static int connection_new(int fd, const GrpcServerHandlers *handlers, GrpcConnection **ret) {
        GrpcConnection *connection = calloc(1, sizeof(*connection));
        int r = -ENOMEM;

        if (connection) {
                connection->fd = fd;
                connection->is_server = handlers;
                if (handlers)
                        connection->handlers = *handlers;
                r = make_session(connection);
                if (r >= 0)
                        r = submit_settings(connection);
        }
        if (r >= 0) {
                *ret = connection;
                return 0;
        }
        if (connection && connection->session)
                nghttp2_session_del(connection->session);
        free(connection);
        (void) close(fd);
        return r;
}

int grpc_server_new(int fd, const GrpcServerHandlers *handlers, GrpcConnection **ret) {
        return connection_new(fd, handlers, ret);
}

int grpc_client_new(int fd, GrpcConnection **ret) {
        return connection_new(fd, NULL, ret);
}

static void end_all_calls(GrpcConnection *connection) {
        while (connection->calls) {
                GrpcCall *call = connection->calls;

                if (call->stream > 0)
                        (void) nghttp2_session_set_stream_user_data(connection->session,
                                                                    call->stream, NULL);
                call->stream = 0;
                call_end(call, GRPC_UNAVAILABLE, "the connection is gone");
        }
}

GrpcConnection *grpc_connection_free(GrpcConnection *connection) {
        if (!connection)
                return NULL;
        connection->is_over = true;
        end_all_calls(connection);
        nghttp2_session_del(connection->session);
        buffer_done(&connection->output);
        (void) close(connection->fd);
        free(connection);
        return NULL;
}

int grpc_connection_fd(const GrpcConnection *connection) {
        return connection->fd;
}

size_t grpc_connection_calls(const GrpcConnection *connection) {
        return connection->n_calls;
}

/* Nothing is read from a peer that does not read its answers: each of its frames may cause another
 * answer, for example the refusal of a stream. */
static bool is_peer_stalled(const GrpcConnection *connection) {
        return connection->output.length > 0 &&
               nghttp2_session_get_outbound_queue_size(connection->session) >= OUTBOUND_FRAMES_MAX;
}

short grpc_connection_events(const GrpcConnection *connection) {
        short events = 0;

        if (connection->is_over)
                return 0;
        if (nghttp2_session_want_read(connection->session) && !is_peer_stalled(connection))
                events |= POLLIN;
        if (connection->output.length > 0 || nghttp2_session_want_write(connection->session))
                events |= POLLOUT;
        return events;
}

uint64_t grpc_connection_deadline(const GrpcConnection *connection) {
        uint64_t next = UINT64_MAX;

        for (const GrpcCall *call = connection->calls; call; call = call->next)
                next = MIN(next, call->deadline);
        return next;
}

static int read_peer(GrpcConnection *connection) {
        uint8_t data[READ_SIZE];

        for (unsigned i = 0; i < READS_MAX; i++) {
                ssize_t n = recv(connection->fd, data, sizeof(data), MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return 0;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -ECONNRESET;
                if (nghttp2_session_mem_recv(connection->session, data, (size_t) n) < 0)
                        return -EPROTO;
        }
        return 0;
}

static int write_buffered(GrpcConnection *connection) {
        while (connection->output.length > 0) {
                ssize_t n = send(connection->fd, connection->output.data, connection->output.length,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno != EINTR)
                        return errno == EAGAIN ? -EAGAIN : -errno;
                if (n > 0)
                        buffer_drop(&connection->output, (size_t) n);
        }
        return 0;
}

static int write_output(GrpcConnection *connection) {
        for (;;) {
                const uint8_t *data;
                ssize_t n;
                int r = write_buffered(connection);

                if (r < 0)
                        return r == -EAGAIN ? 0 : r;
                n = nghttp2_session_mem_send(connection->session, &data);
                if (n < 0)
                        return -EPROTO;
                if (n == 0)
                        return 0;
                r = buffer_append(&connection->output, data, (size_t) n, OUTPUT_MAX);
                if (r < 0)
                        return r;
        }
}

static GrpcCall *find_late_call(const GrpcConnection *connection) {
        for (GrpcCall *call = connection->calls; call; call = call->next)
                if (call->deadline <= connection->now)
                        return call;
        return NULL;
}

static void end_late_calls(const GrpcConnection *connection) {
        GrpcCall *call;

        while ((call = find_late_call(connection))) {
                call_reset(call, NGHTTP2_CANCEL);
                call_end(call, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
        }
}

int grpc_connection_process(GrpcConnection *connection, uint64_t now_usec) {
        int r;

        if (connection->is_over)
                return -ECONNRESET;
        connection->now = now_usec;
        r = is_peer_stalled(connection) ? 0 : read_peer(connection);
        end_late_calls(connection);
        if (r >= 0)
                r = write_output(connection);
        if (r >= 0 && !nghttp2_session_want_read(connection->session) &&
            !nghttp2_session_want_write(connection->session) && connection->output.length == 0)
                r = -ECONNRESET;
        connection->is_over = r < 0;
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* A session over SPDY: the client opens a stream for each of error (the result), stdin, stdout,
 * stderr and resize, according to its query and the protocol. */

#include "agent/node-api/wire/session-wire-private.h"
#include "agent/node-api/wire/spdy.h"
#include "common/cleanup.h"

typedef enum SpdySessionStream {
        SPDY_SESSION_RESULT,
        SPDY_SESSION_INPUT,
        SPDY_SESSION_OUTPUT,
        SPDY_SESSION_ERROR,
        SPDY_SESSION_RESIZE,
        N_SPDY_SESSION_STREAMS,
} SpdySessionStream;

static const char *const spdy_session_stream_names[N_SPDY_SESSION_STREAMS] = {
        [SPDY_SESSION_RESULT] = "error",  [SPDY_SESSION_INPUT] = "stdin",
        [SPDY_SESSION_OUTPUT] = "stdout", [SPDY_SESSION_ERROR] = "stderr",
        [SPDY_SESSION_RESIZE] = "resize",
};

typedef struct SpdySession {
        SessionWire *wire;
        Spdy *spdy;
        uint32_t streams[N_SPDY_SESSION_STREAMS]; /* 0: not open */
        unsigned n_open, n_expected;
        bool becomes_ready; /* with the current frame */
} SpdySession;

static unsigned count_expected_streams(const SessionWire *wire) {
        const SessionOptions *options = &wire->options;

        return 1U + options->has_input + options->has_output + options->has_error +
               (options->has_terminal && wire->protocol->has_resize_stream);
}

static int on_session_stream_open(uint32_t stream, const SpdyHeaders *headers, void *userdata) {
        SpdySession *session = userdata;
        const char *name = spdy_header_value(headers, "streamtype");

        for (unsigned i = 0; name && i < N_SPDY_SESSION_STREAMS; i++) {
                if (!streq(name, spdy_session_stream_names[i]))
                        continue;
                if (session->streams[i] != 0)
                        return -EEXIST;
                session->streams[i] = stream;
                session->becomes_ready = ++session->n_open == session->n_expected;
                return 0;
        }
        return -EINVAL;
}

static void on_session_stream_data(uint32_t stream, const char *data, size_t length,
                                   void *userdata) {
        SpdySession *session = userdata;

        if (stream == session->streams[SPDY_SESSION_INPUT])
                session_wire_report_input(session->wire, data, length);
        else if (stream == session->streams[SPDY_SESSION_RESIZE])
                session_wire_report_resize(session->wire, data, length);
}

static void on_session_stream_end(uint32_t stream, void *userdata) {
        SpdySession *session = userdata;

        if (stream == session->streams[SPDY_SESSION_INPUT])
                session_wire_report_input_end(session->wire);
}

static const SpdyHandlers spdy_session_handlers = { on_session_stream_open, on_session_stream_data,
                                                    on_session_stream_end, on_session_stream_end };

static int spdy_session_new(SessionWire *wire, void **ret_state) {
        SpdySession *session = calloc(1, sizeof(*session));
        int r;

        if (!session)
                return -ENOMEM;
        session->wire = wire;
        session->n_expected = count_expected_streams(wire);
        r = spdy_new(&spdy_session_handlers, session, wire->output, &session->spdy);
        if (r < 0) {
                free(session);
                return r;
        }
        *ret_state = session;
        return 0;
}

static void spdy_session_free(void *state) {
        SpdySession *session = state;

        spdy_free(session->spdy);
        free(session);
}

static int spdy_session_start(void *state) {
        return 0; /* the client opens its streams now */
}

static int spdy_session_receive(void *state, const void *data, size_t length) {
        SpdySession *session = state;
        SessionWire *wire = session->wire;
        int r = spdy_receive(session->spdy, data, length);

        if (r < 0)
                return r;
        /* The reply to the last stream has been sent. */
        if (session->becomes_ready) {
                session->becomes_ready = false;
                wire->handlers->on_ready(wire->userdata);
                if (wire->protocol->has_no_input_end)
                        session_wire_report_input_end(wire);
        }
        return spdy_is_gone(session->spdy);
}

static uint32_t stream_of_session_output(const SpdySession *session, SessionOutput output) {
        return session->streams[output == SESSION_STANDARD_OUTPUT ? SPDY_SESSION_OUTPUT
                                                                  : SPDY_SESSION_ERROR];
}

static int spdy_session_send(void *state, SessionOutput output, const void *data, size_t length) {
        SpdySession *session = state;

        return spdy_send(session->spdy, stream_of_session_output(session, output), data, length,
                         false);
}

static int spdy_session_finish(void *state, const char *status, const char *failure) {
        SpdySession *session = state;
        const char *text = strna(session->wire->protocol->has_json_status ? status : failure);
        int r;

        r = spdy_send(session->spdy, session->streams[SPDY_SESSION_OUTPUT], NULL, 0, true);
        if (r < 0)
                return r;
        r = spdy_send(session->spdy, session->streams[SPDY_SESSION_ERROR], NULL, 0, true);
        if (r < 0)
                return r;
        r = spdy_send(session->spdy, session->streams[SPDY_SESSION_RESULT], text, strlen(text),
                      true);
        if (r < 0)
                return r;
        return spdy_go_away(session->spdy);
}

const SessionWireType session_wire_spdy = {
        .new = spdy_session_new,
        .free = spdy_session_free,
        .start = spdy_session_start,
        .receive = spdy_session_receive,
        .send = spdy_session_send,
        .finish = spdy_session_finish,
};

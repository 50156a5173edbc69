/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations that the two kinds of wires share. */

#include "agent/node-api/wire/session-wire.h"

/* A kind of wire; each function implements session_wire_…(). */
typedef struct SessionWireType {
        int (*new)(SessionWire *wire, void **ret_state);
        void (*free)(void *state);
        int (*start)(void *state);
        int (*receive)(void *state, const void *data, size_t length);
        int (*send)(void *state, SessionOutput output, const void *data, size_t length);
        int (*finish)(void *state, const char *status, const char *failure);
} SessionWireType;

extern const SessionWireType session_wire_spdy, session_wire_websocket;

/* JSON values of terminal sizes, one after the other, in pieces. */
typedef struct ResizeText {
        char text[SESSION_RESIZE_MAX];
        size_t length;
} ResizeText;

struct SessionWire {
        const SessionWireType *type;
        void *state; /* of the type */
        const SessionProtocol *protocol;
        SessionOptions options;
        const SessionWireHandlers *handlers;
        void *userdata;
        ByteQueue *output;
        bool is_input_over;
        ResizeText resize;
};

void session_wire_report_input(SessionWire *wire, const char *data, size_t length);
void session_wire_report_input_end(SessionWire *wire); /* reports it only once */

/* Reports each complete size; anything else is dropped. */
void session_wire_report_resize(SessionWire *wire, const char *data, size_t length);

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/session-wire.h"

#include "agent/node-api/wire/session-wire-private.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int session_wire_new(const SessionProtocol *protocol, const SessionOptions *options,
                     const SessionWireHandlers *handlers, void *userdata, ByteQueue *output,
                     SessionWire **ret) {
        SessionWire *wire = calloc(1, sizeof(*wire));
        int r;

        if (!wire)
                return -ENOMEM;
        wire->type = protocol->transport == SESSION_OVER_SPDY ? &session_wire_spdy
                                                              : &session_wire_websocket;
        wire->protocol = protocol;
        wire->options = *options;
        wire->handlers = handlers;
        wire->userdata = userdata;
        wire->output = output;
        r = wire->type->new (wire, &wire->state);
        if (r < 0) {
                free(wire);
                return r;
        }
        *ret = wire;
        return 0;
}

SessionWire *session_wire_free(SessionWire *wire) {
        if (wire)
                wire->type->free(wire->state);
        free(wire);
        return NULL;
}

int session_wire_start(SessionWire *wire) {
        return wire->type->start(wire->state);
}

int session_wire_receive(SessionWire *wire, const void *data, size_t length) {
        return wire->type->receive(wire->state, data, length);
}

int session_wire_send(SessionWire *wire, SessionOutput output, const void *data, size_t length) {
        bool is_wanted = output == SESSION_STANDARD_OUTPUT ? wire->options.has_output
                                                           : wire->options.has_error;

        return is_wanted && length > 0 ? wire->type->send(wire->state, output, data, length) : 0;
}

int session_wire_finish(SessionWire *wire, const char *status, const char *failure) {
        return wire->type->finish(wire->state, status, failure);
}

void session_wire_report_input(SessionWire *wire, const char *data, size_t length) {
        if (wire->options.has_input && !wire->is_input_over && length > 0)
                wire->handlers->on_input(data, length, wire->userdata);
}

void session_wire_report_input_end(SessionWire *wire) {
        if (wire->is_input_over)
                return;
        wire->is_input_over = true;
        if (wire->options.has_input)
                wire->handlers->on_input_end(wire->userdata);
}

/* ---- sizes of the terminal ---- */

static unsigned find_size_number(const char *json, const char *name) {
        const char *found = strcasestr(json, name);
        unsigned long number;

        if (!found)
                return 0;
        found += strlen(name);
        found += strspn(found, " \t\r\n:");
        number = strtoul(found, NULL, 10);
        return number <= UINT16_MAX ? (unsigned) number : 0;
}

/* The object is flat and only its two numbers matter; the shim gets a newly written one. */
static void report_one_size(SessionWire *wire, const char *json) {
        unsigned width = find_size_number(json, "\"width\"");
        unsigned height = find_size_number(json, "\"height\"");

        if (width > 0 && height > 0)
                wire->handlers->on_resize(width, height, wire->userdata);
}

void session_wire_report_resize(SessionWire *wire, const char *data, size_t length) {
        ResizeText *resize = &wire->resize;

        if (!wire->options.has_terminal)
                return;
        for (size_t i = 0; i < length; i++) {
                if (data[i] == '\0' || resize->length + 1 >= sizeof(resize->text)) {
                        resize->length = 0;
                        continue;
                }
                resize->text[resize->length++] = data[i];
                if (data[i] != '}')
                        continue;
                resize->text[resize->length] = '\0';
                report_one_size(wire, resize->text);
                resize->length = 0;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes from the client of a session have the same effect in one piece and byte by byte. The
 * first byte selects the protocol. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/wire/session-wire.h"
#include "common/cleanup.h"

#include <errno.h>

typedef struct WireReport {
        uint64_t sum;
        bool has_input_ended;
} WireReport;

static void add_to_report(WireReport *report, uint64_t value) {
        report->sum = (report->sum ^ value) * UINT64_C(1099511628211);
}

static void on_fuzzed_ready(void *userdata) {
}

static void on_fuzzed_input(const char *data, size_t length, void *userdata) {
        WireReport *report = userdata;

        assert(length > 0 && !report->has_input_ended);
        for (size_t i = 0; i < length; i++)
                add_to_report(report, (unsigned char) data[i]);
}

static void on_fuzzed_input_end(void *userdata) {
        WireReport *report = userdata;

        assert(!report->has_input_ended);
        report->has_input_ended = true;
}

static void on_fuzzed_resize(unsigned width, unsigned height, void *userdata) {
        assert(width > 0 && width <= UINT16_MAX && height > 0 && height <= UINT16_MAX);
        add_to_report(userdata, (uint64_t) width << 32 | height);
}

static const SessionWireHandlers fuzzed_handlers = { on_fuzzed_ready, on_fuzzed_input,
                                                     on_fuzzed_input_end, on_fuzzed_resize };

static const SessionProtocol *choose_fuzzed_protocol(uint8_t number) {
        static const char *const names[] = { "v5.channel.k8s.io", "v4.channel.k8s.io",
                                             "base64.channel.k8s.io", "v4.base64.channel.k8s.io" };

        return number % 5 == 4 ? session_protocol_of_spdy("v4.channel.k8s.io")
                               : session_protocol_of_websocket(names[number % 5]);
}

static uint64_t run_fuzzed_wire(const uint8_t *data, size_t size, size_t piece, int *ret) {
        static const SessionOptions options = { true, true, true, true };
        WireReport report = { 0 };
        ByteQueue output = { 0 };
        SessionWire *wire;
        size_t n = 1;

        assert(session_wire_new(choose_fuzzed_protocol(data[0]), &options, &fuzzed_handlers,
                                &report, &output, &wire) >= 0);
        *ret = session_wire_start(wire);
        while (*ret == 0 && n < size) {
                size_t next = MIN(piece, size - n);

                *ret = session_wire_receive(wire, data + n, next);
                n += next;
        }
        assert(*ret >= 0 || *ret == -EPROTO || *ret == -ENOBUFS);
        (void) session_wire_finish(wire, "{}", NULL);
        session_wire_free(wire);
        byte_queue_done(&output);
        return report.sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint64_t sum_of_whole, sum_of_pieces;
        int whole, pieces;

        if (size == 0)
                return 0;
        sum_of_whole = run_fuzzed_wire(data, size, SIZE_MAX, &whole);
        sum_of_pieces = run_fuzzed_wire(data, size, 1, &pieces);
        /* wslay checks each piece of data for valid UTF-8 as a whole before it passes the piece on;
         * in the reason of a close frame, it checks from the third byte of each piece on. */
        assert(whole == -EPROTO || (whole == pieces && sum_of_whole == sum_of_pieces));
        return 0;
}

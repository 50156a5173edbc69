/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes from a client have the same effect in one piece and byte by byte, and afterwards the
 * connection can still send data and be closed. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/wire/spdy.h"
#include "common/cleanup.h"

#include <errno.h>

/* A checksum of the reports of a connection. */
typedef struct SpdyReport {
        Spdy *spdy;
        ByteQueue output;
        uint64_t sum;
        uint32_t last_stream;
} SpdyReport;

static void add_to_report(SpdyReport *report, uint64_t value) {
        report->sum = (report->sum ^ value) * UINT64_C(1099511628211);
}

static int on_fuzzed_stream(uint32_t stream, const SpdyHeaders *headers, void *userdata) {
        SpdyReport *report = userdata;
        const char *type = spdy_header_value(headers, "streamtype");

        assert(headers->n <= SPDY_HEADERS_MAX && stream % 2 == 1 && stream > report->last_stream);
        report->last_stream = stream;
        add_to_report(report, stream);
        add_to_report(report, type ? strlen(type) : 0);
        return stream % 5 == 0 ? -EINVAL : 0;
}

static void on_fuzzed_data(uint32_t stream, const char *data, size_t length, void *userdata) {
        SpdyReport *report = userdata;

        assert(length > 0);
        for (size_t i = 0; i < length; i++)
                add_to_report(report, (uint64_t) stream << 8 | (unsigned char) data[i]);
        (void) spdy_send(report->spdy, stream, data, 1, false);
}

static void on_fuzzed_end(uint32_t stream, void *userdata) {
        SpdyReport *report = userdata;

        add_to_report(report, (uint64_t) stream << 32);
        (void) spdy_send(report->spdy, stream, NULL, 0, true);
}

static void on_fuzzed_reset(uint32_t stream, void *userdata) {
        add_to_report(userdata, (uint64_t) stream << 33);
}

static const SpdyHandlers fuzzed_handlers = { on_fuzzed_stream, on_fuzzed_data, on_fuzzed_end,
                                              on_fuzzed_reset };

static uint64_t run_fuzzed_spdy(const uint8_t *data, size_t size, size_t piece, int *ret) {
        SpdyReport report = { 0 };
        size_t n = 0;

        *ret = 0;
        assert(spdy_new(&fuzzed_handlers, &report, &report.output, &report.spdy) >= 0);
        while (n < size) {
                size_t next = MIN(piece, size - n);
                int r = spdy_receive(report.spdy, data + n, next);

                assert(*ret >= 0 || r == *ret); /* an error is final */
                *ret = r;
                n += next;
        }
        assert(*ret == 0 || *ret == -EPROTO || *ret == -ENOBUFS);
        assert(byte_queue_length(&report.output) <= SPDY_OUTPUT_MAX);
        (void) spdy_go_away(report.spdy);
        spdy_free(report.spdy);
        byte_queue_done(&report.output);
        return report.sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        int whole, pieces;
        uint64_t sum = run_fuzzed_spdy(data, size, SIZE_MAX, &whole);

        assert(sum == run_fuzzed_spdy(data, size, 1, &pieces) && whole == pieces);
        return 0;
}

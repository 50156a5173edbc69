/* SPDX-License-Identifier: Apache-2.0 */
/* A container's log in the CRI format: each valid line is added to the output of 'logs', which is
 * never longer than the lines. */

#include "tests/fuzz/fuzz.h"

#include "agent/http/log-line.h"

#include <string.h>

static void join_lines(const char *text, size_t size, bool with_times) {
        LogJoiner joiner = { .with_times = with_times };
        LogRecord record;
        uint64_t usec;

        for (const char *end = text + size; text < end;) {
                const char *newline = memchr(text, '\n', (size_t) (end - text));
                size_t length = (size_t) ((newline ? newline : end) - text);

                if (log_record_parse(text, length, &record) >= 0) {
                        assert(record.stream < N_LOG_STREAMS && record.length <= length);
                        (void) log_record_time(&record, &usec);
                        assert(log_joiner_push(&joiner, &record) >= 0);
                }
                text += length + 1;
        }
        assert(log_joiner_flush(&joiner) >= 0);
        log_joiner_done(&joiner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        join_lines((const char *) data, size, false);
        join_lines((const char *) data, size, true);
        return 0;
}

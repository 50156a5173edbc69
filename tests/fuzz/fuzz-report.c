/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting reports, as the agent reads them from its own disk. The result is written and read
 * again. */

#include "tests/fuzz/fuzz.h"

#include "agent/report/report-queue.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
        ROOM = 4096
};

static char *print_lines(ReportQueue *queue) {
        const char *name;
        char *lines;
        int r = report_queue_next_unsaved(queue, &name, &lines);

        assert(r == 0 || strcmp(name, "web") == 0);
        return r > 0 ? lines : NULL;
}

static void check_written_again(ReportQueue *queue) {
        cleanup_with(report_queue_freep) ReportQueue *again = report_queue_new(ROOM);
        cleanup_free char *lines = print_lines(queue), *copy = lines ? strdup(lines) : NULL;
        cleanup_free char *first = report_queue_take(queue, ROOM), *second = NULL;

        assert(again && (!copy || report_queue_restore(again, "web", copy) == 0));
        second = report_queue_take(again, ROOM);
        assert((first != NULL) == (second != NULL));
        assert(!first || strcmp(first, second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);
        cleanup_free char *lines = strndup((const char *) data, size);
        int r;

        assert(queue && lines);
        r = report_queue_restore(queue, "web", lines);
        assert(r == 0 || r == -EBADMSG);
        /* A newer line replaces the state of its object, which then differs from the one on
         * disk. */
        assert(report_queue_put(queue, "web", "newest", "{}") == 1);
        check_written_again(queue);
        return 0;
}

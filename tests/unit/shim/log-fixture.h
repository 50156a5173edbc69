/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A log whose files are opened in this process, like the shim does for its copier. */

#include "agent/shim/container-log.h"
#include "tests/test.h"

#include <errno.h>

typedef struct TestLogFile {
        RotatedLog *file;
        unsigned max_files;
} TestLogFile;

static inline int open_test_log_file(void *userdata, LogRequest request, uint64_t realtime_usec,
                                     OpenedLog *ret) {
        const TestLogFile *opened = userdata;

        return request == LOG_REQUEST_ROTATE
                       ? rotated_log_rotate(opened->file, opened->max_files, realtime_usec, ret)
                       : rotated_log_open(opened->file, ret);
}

/* 'file' must outlive the log. */
static inline ContainerLog *open_test_log(TestLogFile *file, const char *path, LogLimits limits) {
        const LogOpener opener = { open_test_log_file, file };
        OpenedLog opened = { .fd = -EBADF };
        ContainerLog *log = NULL;
        int r;

        file->max_files = limits.max_files;
        REQUIRE(rotated_log_new(path, &file->file, NULL) == 0);
        r = rotated_log_open(file->file, &opened);
        REQUIRE(r == 0 || rotated_log_may_open_later(r));
        REQUIRE(container_log_new(opened.fd, limits, &opener, &log) == 0);
        return log;
}

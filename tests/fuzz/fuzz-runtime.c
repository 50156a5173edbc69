/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an OCI runtime: its log, whose last error is reported, and the file with a process
 * ID. */

#include "tests/fuzz/canary.h"

#include "agent/shim/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *path = path_join(lay_canary(), "log"), *message = NULL;
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        pid_t pid;

        assert(fd >= 0 && write_all(fd, (const char *) data, size) >= 0);
        message = runtime_log_last_error_at(path);
        if (runtime_read_pid(path, &pid) >= 0)
                assert(pid > 1);
        return 0;
}

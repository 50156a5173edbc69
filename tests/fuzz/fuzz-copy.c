/* SPDX-License-Identifier: Apache-2.0 */
/* The tar that 'mainstay cp' gets from a container: it becomes one file or directory. */

#include "tests/fuzz/canary.h"

#include "agent/cli/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_close int input = open_fuzz_file(data, size);
        cleanup_close int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_error Error error = ERROR_NULL;

        assert(before >= 0 && chdir(lay_canary()) >= 0);
        if (tar_unpack(input, "name", "target", &error) < 0)
                assert(error.message);
        expect_canary("target", "target");
        assert(remove_tree_at(AT_FDCWD, "target") >= 0 && fchdir(before) >= 0);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The fstab from which a shim mounts, and /proc/self/mountinfo, which contains names that
 * containers choose. */

#include "tests/fuzz/fuzz.h"

#include "agent/shim/fstab.h"
#include "agent/shim/mountinfo.h"
#include "common/cleanup.h"

#include <string.h>

static void check_fstab(const uint8_t *data, size_t size) {
        cleanup_free char *text = calloc(1, size + 1);
        cleanup_error Error error = ERROR_NULL;
        Fstab fstab = { 0 };

        assert(text);
        memcpy(text, data, size);
        if (fstab_parse(text, size, &fstab, &error) < 0)
                assert(error.message);
        for (size_t i = 0; i < fstab.n; i++)
                assert(fstab.mounts[i].target && fstab.mounts[i].target[0] == '/');
        fstab_done(&fstab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = strndup((const char *) data, size);
        MountInfo info = { .data = text, .cursor = text };
        MountPoint point;

        assert(text);
        while (mountinfo_next(&info, &point)) {
                assert(point.path);
                (void) path_is_beneath(point.path, "/run/mainstay");
        }
        mountinfo_done(&info);
        check_fstab(data, size);
        return 0;
}

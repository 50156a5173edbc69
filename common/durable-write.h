/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small files that must survive a power cut, written by a child, so that the loop does not wait for
 * a disk: each beside its name, synced, renamed over it, and at last the directory synced. */

#include "common/forked-task.h"

#include <sys/types.h>

typedef struct DurableFile {
        const char *name; /* in the directory */
        const char *text; /* NULL: it is removed */
        mode_t mode;
} DurableFile;

/* The texts need not outlive the call. At most DURABLE_WRITE_FILES_MAX files, in their order: what
 * fails ends it. The directory is made, 0700, where it is not there. 0 or -errno. */
enum {
        DURABLE_WRITE_FILES_MAX = 16
};
int durable_write_start(sd_event *event, const char *directory, const DurableFile *files, size_t n,
                        forked_task_done_t done, void *userdata, ForkedTask **ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes small files that must survive a power cut, in a child process, so that the loop does not
 * wait for the disk. Each file is written under a temporary name, synced and renamed; finally the
 * directory is synced. Writers of a directory take turns (flock(2) on the directory), so that a
 * child of a killed agent does not overwrite data of the next agent. */

#include "common/forked-task.h"

#include <sys/types.h>

typedef struct DurableFile {
        const char *name; /* in the directory; at most DURABLE_WRITE_NAME_MAX characters */
        const char *text; /* NULL: it is removed */
        mode_t mode;
} DurableFile;

/* The texts need not outlive the call. At most DURABLE_WRITE_FILES_MAX files, written in order
 * until the first failure. A missing directory is created with mode 0700. 0 or -errno. */
enum {
        DURABLE_WRITE_FILES_MAX = 16,
        DURABLE_WRITE_NAME_MAX = 250
};
int durable_write_start(sd_event *event, const char *directory, const DurableFile *files, size_t n,
                        forked_task_done_t done, void *userdata, ForkedTask **ret);

/* The same in this process, which blocks on the disk: for its exit. */
int durable_write_now(const char *directory, const DurableFile *files, size_t n);

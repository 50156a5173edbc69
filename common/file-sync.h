/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small files that must survive a power cut, written by a child, so that the loop does not wait for
 * a disk: each beside its name, synced, renamed over it, and at last the directory synced. */

#include "common/error.h"

#include <sys/types.h>
#include <systemd/sd-event.h>

typedef struct FileSync FileSync;

typedef struct FileText {
        const char *name; /* in the directory */
        const char *text; /* NULL: it is removed */
        mode_t mode;
} FileText;

/* Called once, from the loop, with 0 or -errno; the FileSync is freed after. */
typedef void (*file_sync_done_t)(int r, void *userdata);

/* The texts need not outlive the call. At most FILE_SYNC_MAX files, in their order: what fails ends
 * it. The directory is made, 0700, where it is not there. SIGCHLD is blocked. 0 or -errno. */
enum {
        FILE_SYNC_MAX = 16
};
int file_sync_start(sd_event *event, const char *directory, const FileText *files, size_t n,
                    file_sync_done_t done, void *userdata, FileSync **ret);

/* Forgets it without calling back: the child ends as it will. NULL is fine. */
FileSync *file_sync_free(FileSync *sync);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading a directory that anybody may have put anything into: which names are manifests, and the
 * bytes of one of them, without ever waiting for a FIFO, touching a device, leaving the directory
 * by a link or reading what somebody is still writing. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

#define MANIFEST_BYTES_MAX (10 * MIB)

enum {
        MANIFEST_FILES_MAX = 10000 /* in the directory */
};

/* What a file looked like when it was read, to tell without reading that it is the same. */
typedef struct FileStamp {
        dev_t device;
        ino_t inode;
        off_t size;
        int64_t modified_nsec;
        int64_t changed_nsec;
        /* False where it had changed only just before, so that another change may have left the
         * same times. */
        bool is_settled;
} FileStamp;

/* The names in the directory that are manifests', sorted, for strv_free(). 0 or -errno. */
int list_manifest_files(int dir_fd, char ***ret_names);

enum {
        READER_UNCHANGED = 1, /* by its stamp */
        READER_BUSY = 2,      /* somebody has it open for writing: try again soon */
};

/* Reads 'name' into memory that the caller frees, with a NUL behind it that is not counted. 'stamp'
 * is that of the last reading (zeroed: none) and is renewed when bytes are returned. 0,
 * READER_UNCHANGED, READER_BUSY; or -errno with the sentence "web.yaml: is a FIFO; …", but
 * for a name that is not there any more: -ENOENT without one. */
int read_manifest_file(int dir_fd, const char *name, FileStamp *stamp, char **ret_data,
                       size_t *ret_length, Error *reterr);

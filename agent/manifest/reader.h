/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads an untrusted directory: lists the names of manifests and reads their content, without
 * blocking on a FIFO, opening a device, following a link out of the directory, or reading a file
 * that is still being written. */

#include "common/error.h"
#include "common/file-stamp.h"

#include <stdint.h>

#define MANIFEST_BYTES_MAX (10 * MIB)

enum {
        MANIFEST_FILES_MAX = 10000 /* in the directory */
};

/* Identifies the state of a file when it was read, to detect without reading that it is
 * unchanged. */
typedef struct ManifestStamp {
        FileStamp file;
        /* False if the file had changed immediately before, so that another change could result in
         * the same times. */
        bool is_settled;
} ManifestStamp;

/* The sorted names of manifests in the directory, for strv_free(). 0 or -errno. */
int list_manifest_files(int dir_fd, char ***ret_names);

enum {
        READER_UNCHANGED = 1, /* according to its stamp */
        READER_BUSY = 2,      /* a process has it open for writing: try again soon */
};

/* Reads 'name' into memory that the caller frees, followed by a NUL that is not counted. 'stamp' is
 * from the last read (zeroed: none), and is updated when content is returned. 0, READER_UNCHANGED,
 * READER_BUSY; or -errno with a message such as "web.yaml: is a FIFO; …"; -ENOENT, without a
 * message, for a name that no longer exists. */
int read_manifest_file(int dir_fd, const char *name, ManifestStamp *stamp, char **ret_data,
                       size_t *ret_length, Error *reterr);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The file of a container's log, and its rotation: the operations that need access to the
 * directory. Lines are written elsewhere (container-log.h), in a process that only receives
 * descriptors.
 *
 * The file is renamed to "<file>.<YYYYMMDD-HHMMSS>"; the oldest files beyond containerLogMaxFiles
 * are removed. Log files are read elsewhere (agent/http). */

#include "common/error.h"

#include <stdint.h>

typedef struct LogLimits {
        uint64_t max_size;  /* in bytes; 0: no limit */
        unsigned max_files; /* including the current one; 0 and 1 both mean no other file */
} LogLimits;

typedef struct RotatedLog RotatedLog;

/* A file that was opened for appending. */
typedef struct OpenedLog {
        int fd;          /* O_CLOEXEC, the caller closes it; or -EBADF */
        bool is_rotated; /* the earlier file was renamed, even if opening the next one failed */
} OpenedLog;

/* Finds the directory of 'path', which must exist. 0 or -errno. */
int rotated_log_new(const char *path, RotatedLog **ret, Error *reterr);

/* Creates the file if necessary. 0 or -errno. */
int rotated_log_open(RotatedLog *file, OpenedLog *ret);

/* Renames the file so that it sorts after all earlier ones, and opens the next one. 0 or -errno. */
int rotated_log_rotate(RotatedLog *file, unsigned max_files, uint64_t realtime_usec,
                       OpenedLog *ret);

/* Whether the error is unrelated to the container, such as a full disk; the file is then created
 * later. */
bool rotated_log_may_open_later(int r);

/* Removes the file of a container that has written nothing. */
void rotated_log_remove_empty(const RotatedLog *file);

RotatedLog *rotated_log_free(RotatedLog *file);
DEFINE_CLEANUP(RotatedLog *, rotated_log_free)

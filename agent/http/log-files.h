/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of the log of one container attempt (restart count): "<n>.log", which is being written,
 * and the rotated ones, "<n>.log.<YYYYMMDD-HHMMSS>". Together, oldest first, they are one log. The
 * shim rotates them. */

#include "common/error.h"

#include <sys/types.h>
#include <time.h>

enum {
        LOG_FILE_NAME_MAX = 64,
        LOG_FILES_MAX = 1024, /* more than can be configured */
};

typedef struct LogFile {
        char name[LOG_FILE_NAME_MAX];
        ino_t inode;
        struct timespec written; /* time of the last write */
} LogFile;

typedef struct LogFiles {
        LogFile *items; /* oldest first; the last one is the file that is being written */
        size_t n;
} LogFiles;

/* Lists the files that exist now. 0 or -errno. */
int log_files_list(int dir_fd, unsigned attempt, LogFiles *ret);
void log_files_done(LogFiles *files);

/* Opens a file of the list for reading: only a regular file without symbolic or hard links. -ESTALE
 * if the name has come to refer to another file. Returns a descriptor or -errno. */
int log_file_open(int dir_fd, const LogFile *file);

/* Opens the file after the one that is open as 'from_fd'; negative: the oldest. In the meantime,
 * files may be rotated, and the oldest removed. 1 with a descriptor, 0 if there is none, -EAGAIN if
 * files were rotated faster than they could be opened, or another -errno. */
int log_files_open_next(int dir_fd, unsigned attempt, int from_fd, int *ret_fd);

/* Opens the previous file in the same way; a negative 'from_fd': the newest file. */
int log_files_open_previous(int dir_fd, unsigned attempt, int from_fd, int *ret_fd);

/* The inode of the file that is being written, or 0. */
ino_t log_files_current(int dir_fd, unsigned attempt);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the log of one container attempt as the kubelet returns it: across rotated files, from the
 * tail or since a time, up to the end or following. It never waits, but reports that nothing is
 * available. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct LogOptions {
        int64_t tail_lines;  /* counted after joining; -1: all */
        int64_t limit_bytes; /* limit of the output; -1: no limit */
        uint64_t since_usec; /* realtime; 0: all */
        bool timestamps;
        bool follow;
} LogOptions;

#define LOG_OPTIONS_ALL ((LogOptions){ .tail_lines = -1, .limit_bytes = -1 })

typedef struct LogSpec {
        const char *directory; /* the container's log directory, absolute; neither of its last two
                                  components may be a link */
        unsigned attempt;
        bool is_live; /* the attempt is still running, so more may be written */
        LogOptions options;
} LogSpec;

typedef struct LogReader LogReader;

/* -ENOENT if the file is missing and the attempt is not running; otherwise another -errno; with a
 * message. */
int log_reader_new(const LogSpec *spec, LogReader **ret, Error *reterr);
LogReader *log_reader_free(LogReader *reader);
DEFINE_CLEANUP(LogReader *, log_reader_free)

/* Returns the number of bytes written (> 0); 0: nothing until more is written (only when
 * following); -EAGAIN: much was read without a result so far; to be called again in another turn;
 * -ENODATA: the end; or another -errno. */
ssize_t log_reader_read(LogReader *reader, char *buffer, size_t size);

/* Nothing will be written from now on: the rest is read, then the log ends. */
void log_reader_set_ended(LogReader *reader);

/* The directory, borrowed, and the inotify(7) events in it after which there may be more. */
#define LOG_READER_EVENTS \
        (IN_MODIFY | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR)
int log_reader_dir_fd(const LogReader *reader);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The lines of a container's log in the CRI format, "<RFC3339Nano> stdout|stderr F|P <line>".
 *
 * The file is rotated before it would exceed containerLogMaxSize; another process opens and renames
 * files (rotated-log.h) on request through a LogOpener. Writing never fails for the caller: bytes
 * that cannot be written to the disk are dropped and counted, and the log reports their number once
 * it can be written again. */

#include "agent/shim/journal-log.h"
#include "agent/shim/rotated-log.h"

#include "common/buffer.h"

#include <stdint.h>

enum {
        LOG_LINE_MAX = 16 * 1024, /* limit for the text of one line; longer lines are split into
                                   * parts */
};

typedef struct ContainerLog ContainerLog;

/* The state of one of the two streams: the beginning of a line whose end has not been read yet. */
typedef struct LogStreamBuffer {
        const char *name; /* "stdout" or "stderr" */
        Buffer carry;
} LogStreamBuffer;

typedef enum LogRequest {
        LOG_REQUEST_OPEN,   /* as rotated_log_open() */
        LOG_REQUEST_ROTATE, /* as rotated_log_rotate() */
} LogRequest;

typedef struct LogOpener {
        int (*open)(void *userdata, LogRequest request, uint64_t realtime_usec, OpenedLog *ret);
        void *userdata;
} LogOpener;

/* A log that appends to 'fd_consume' and owns it; if it is negative, the file is opened for the
 * first line. 0 or -ENOMEM. */
int container_log_new(int fd_consume, LogLimits limits, const LogOpener *opener,
                      ContainerLog **ret);

/* Writes the lines that these bytes complete, and keeps the rest. */
void container_log_write(ContainerLog *log, LogStreamBuffer *stream, const char *data,
                         size_t length, uint64_t realtime_usec);

/* The stream ends or pauses: writes the kept rest as a partial line. */
void container_log_end_line(ContainerLog *log, LogStreamBuffer *stream, uint64_t realtime_usec);

/* Lines are also written to the journal from now on. */
void container_log_set_journal_take(ContainerLog *log, JournalLog *journal);

/* Sets new limits, which apply from the next line. */
void container_log_set_limits(ContainerLog *log, LogLimits limits);

ContainerLog *container_log_free(ContainerLog *log);
DEFINE_CLEANUP(ContainerLog *, container_log_free)

void log_stream_buffer_done(LogStreamBuffer *stream);

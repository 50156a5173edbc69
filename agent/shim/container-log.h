/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container's log file in the CRI format: "<RFC3339Nano> stdout|stderr F|P <line>".
 *
 * Rotates before the file would grow beyond its limit, to "<file>.<YYYYMMDD-HHMMSS>". Writing never
 * fails for the caller: what the disk does not take is dropped and counted, and the log says so
 * once it can be written again. */

#include "agent/shim/journal-log.h"
#include "common/error.h"

#include <stdint.h>

enum {
        LOG_LINE_MAX = 16 * 1024, /* of one line's text; longer ones are cut into parts */
};

typedef struct LogLimits {
        uint64_t max_size;  /* bytes; 0: no limit */
        unsigned max_files; /* with the one that is written; 0 and 1 mean that one */
} LogLimits;

typedef struct ContainerLog ContainerLog;

/* What is known of one of the two streams: the beginning of a line whose end has not come. */
typedef struct LogStreamBuffer {
        const char *name; /* "stdout" or "stderr" */
        char *carry;
        size_t carry_length;
} LogStreamBuffer;

/* Opens 'path', whose directory must be there, to append. A disk that is full is no error: the file
 * is made when it can be. 0 or -errno. */
int container_log_open(const char *path, LogLimits limits, ContainerLog **ret, Error *reterr);

/* Writes the lines that are complete in the stream with these bytes, and keeps the rest. */
void container_log_write(ContainerLog *log, LogStreamBuffer *stream, const char *data,
                         size_t length, uint64_t realtime_usec);

/* The stream ends, or pauses: writes what it kept, as a part of a line. */
void container_log_end_line(ContainerLog *log, LogStreamBuffer *stream, uint64_t realtime_usec);

/* From now on lines go to the journal as well. */
void container_log_set_journal_take(ContainerLog *log, JournalLog *journal);

/* New limits, from the next line on. */
void container_log_set_limits(ContainerLog *log, LogLimits limits);

ContainerLog *container_log_free(ContainerLog *log);
DEFINE_CLEANUP(ContainerLog *, container_log_free)

void log_stream_buffer_done(LogStreamBuffer *stream);

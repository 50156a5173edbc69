/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container's log file in the CRI format, "<RFC3339Nano> stdout|stderr F|P <line>", and its
 * rotation.
 *
 * rotate_container_log(): the file is renamed to "<file>.<YYYYMMDD-HHMMSS>" before it would exceed
 * containerLogMaxSize; the oldest files beyond containerLogMaxFiles are removed. Writing never
 * fails for the caller: bytes that the disk does not accept are dropped and counted, and the log
 * reports the number once it can be written again. Log files are read elsewhere (agent/http). */

#include "agent/shim/journal-log.h"
#include "common/error.h"

#include <stdint.h>

enum {
        LOG_LINE_MAX = 16 * 1024, /* of the text of one line; longer lines are split into parts */
};

typedef struct LogLimits {
        uint64_t max_size;  /* bytes; 0: no limit */
        unsigned max_files; /* including the current one; 0 and 1 both mean only that one */
} LogLimits;

typedef struct ContainerLog ContainerLog;

/* The state of one of the two streams: the start of a line whose end has not been read. */
typedef struct LogStreamBuffer {
        const char *name; /* "stdout" or "stderr" */
        char *carry;
        size_t carry_length;
} LogStreamBuffer;

/* Opens 'path' for appending; its directory must exist. A full disk is not an error: the file is
 * created when that is possible. 0 or -errno. */
int container_log_open(const char *path, LogLimits limits, ContainerLog **ret, Error *reterr);

/* Writes the lines of the stream that are complete with these bytes, and keeps the rest. */
void container_log_write(ContainerLog *log, LogStreamBuffer *stream, const char *data,
                         size_t length, uint64_t realtime_usec);

/* The stream ends or pauses: writes the kept rest as a partial line. */
void container_log_end_line(ContainerLog *log, LogStreamBuffer *stream, uint64_t realtime_usec);

/* From now on lines are written to the journal as well. */
void container_log_set_journal_take(ContainerLog *log, JournalLog *journal);

/* Sets new limits, from the next line on. */
void container_log_set_limits(ContainerLog *log, LogLimits limits);

/* Removes the file of a container that has written nothing. */
void container_log_remove_empty(const ContainerLog *log);

ContainerLog *container_log_free(ContainerLog *log);
DEFINE_CLEANUP(ContainerLog *, container_log_free)

void log_stream_buffer_done(LogStreamBuffer *stream);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lines of a container's log in the CRI format, "<RFC 3339 time> stdout|stderr F|P <text>", and
 * joining the parts of a long line. Pure: bytes in, bytes out. */

#include "common/buffer.h"
#include "common/macros.h"

#include <stdint.h>

enum {
        LOG_STDOUT,
        LOG_STDERR,
        N_LOG_STREAMS,

        LOG_TIME_MAX = 40, /* longer times are invalid */
};

/* One record. It points into the line that it was read from. */
typedef struct LogRecord {
        const char *time;
        size_t time_length;
        unsigned stream;
        bool is_partial; /* the line continues in the next record of its stream */
        const char *text;
        size_t length;
} LogRecord;

/* Parses a record from a line without its newline. 0 or -EBADMSG. */
int log_record_parse(const char *line, size_t length, LogRecord *ret);

/* The time at which the record was written, in realtime microseconds. 0 or -EBADMSG. */
int log_record_time(const LogRecord *record, uint64_t *ret_usec);

/* Joins the parts of long lines. A line of one stream is not interrupted by a line of the other,
 * unless it is too long to be buffered, in which case it continues after the other line. A zeroed
 * struct is empty. */
typedef struct LogJoiner {
        bool with_times;
        Buffer out; /* complete output; the caller takes it and sets the length to 0 */
        Buffer parts[N_LOG_STREAMS];
        bool has_open;   /* 'out' ended in the middle of a line… */
        unsigned opened; /* …of this stream */
} LogJoiner;

/* 0 or -ENOMEM. */
int log_joiner_push(LogJoiner *joiner, const LogRecord *record);

/* Outputs the buffered parts of incomplete lines. 0 or -ENOMEM. */
int log_joiner_flush(LogJoiner *joiner);

void log_joiner_done(LogJoiner *joiner);

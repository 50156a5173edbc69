/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lines of a container's log in the CRI format, "<RFC 3339 time> stdout|stderr F|P <text>", and how
 * the parts of a long line become one again. Pure: bytes in, bytes out. */

#include "common/macros.h"

#include <stdint.h>

enum {
        LOG_STDOUT,
        LOG_STDERR,
        N_LOG_STREAMS,

        LOG_TIME_MAX = 40, /* no time that we accept is longer */
};

/* One record. Points into the line it was read from. */
typedef struct LogRecord {
        const char *time;
        size_t time_length;
        unsigned stream;
        bool is_partial; /* the line goes on in the next record of its stream */
        const char *text;
        size_t length;
} LogRecord;

/* Reads a record from a line, the newline not included. 0 or -EBADMSG. */
int log_record_parse(const char *line, size_t length, LogRecord *ret);

/* When it was written, realtime microseconds. 0 or -EBADMSG. */
int log_record_time(const LogRecord *record, uint64_t *ret_usec);

typedef struct LogBytes {
        char *data;
        size_t length, room;
} LogBytes;

/* Joins the parts of long lines. A line of one stream is never torn by one of the other, unless it
 * is longer than we want to remember: then it goes on after the other. Zeroed is empty. */
typedef struct LogJoiner {
        bool with_times;
        LogBytes out; /* what is ready; the caller takes it and sets the length to 0 */
        LogBytes parts[N_LOG_STREAMS];
        bool has_open;   /* 'out' ended in the middle of a line… */
        unsigned opened; /* …of this stream */
} LogJoiner;

/* 0 or -ENOMEM. */
int log_joiner_push(LogJoiner *joiner, const LogRecord *record);

/* Gives out what is held back of unfinished lines. 0 or -ENOMEM. */
int log_joiner_flush(LogJoiner *joiner);

void log_joiner_done(LogJoiner *joiner);

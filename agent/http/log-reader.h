/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads one attempt's log as the kubelet gives it out: through rotated files, from the tail or
 * since a time, to its end or on and on. Never waits: it says when there is nothing. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct LogOptions {
        int64_t tail_lines;  /* of the joined ones; -1: all */
        int64_t limit_bytes; /* of what is given out; -1: none */
        uint64_t since_usec; /* realtime; 0: all */
        bool timestamps;
        bool follow;
} LogOptions;

#define LOG_OPTIONS_ALL ((LogOptions){ .tail_lines = -1, .limit_bytes = -1 })

typedef struct LogReader LogReader;

/* 'directory' is the container's, absolute; of its two last components neither may be a link.
 * 'is_live' says that somebody may still write. -ENOENT where there is neither a file nor a life;
 * another -errno with the sentence where something else is wrong. */
int log_reader_new(const char *directory, unsigned attempt, bool is_live, const LogOptions *options,
                   LogReader **ret, Error *reterr);
LogReader *log_reader_free(LogReader *reader);
DEFINE_CLEANUP(LogReader *, log_reader_free)

/* Bytes given out (> 0), or
 * 0: nothing before more is written (only when following),
 * -EAGAIN: much was read and nothing found yet; call again, in another turn,
 * -ENODATA: that was all,
 * another -errno. */
ssize_t log_reader_read(LogReader *reader, char *buffer, size_t size);

/* From now on nobody writes: what is there is read, and then it is over. */
void log_reader_set_ended(LogReader *reader);

/* The directory, for a watch on it; borrowed. */
int log_reader_dir_fd(const LogReader *reader);

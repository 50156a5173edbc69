/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the place where the last lines of a log begin, backwards through its files, a bounded
 * amount of work at a time. */

#include "common/macros.h"

#include <stdint.h>

typedef struct LogTail LogTail;

/* Looks for the last 'lines' lines, of which each ends with a record marked F. 1, 0 where
 * there is no file yet, -errno. */
int log_tail_new(int dir_fd, unsigned attempt, uint64_t lines, LogTail **ret);
LogTail *log_tail_free(LogTail *tail);

/* Adds the bytes that were looked at to '*work'. 1 with the file in '*ret_fd', positioned where to
 * begin (left alone where there is no file at all), when found; 0 when not yet; -errno. */
int log_tail_step(LogTail *tail, size_t *work, int *ret_fd);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the position at which the last lines of a log start (tailLines), reading its files
 * backwards, with a bounded amount of work at a time. */

#include "common/macros.h"

#include <stdint.h>

typedef struct LogTail LogTail;

/* Searches for the last 'lines' lines, each of which ends with a record marked F. 1; 0 if there is
 * no file yet; -errno. */
int log_tail_new(int dir_fd, unsigned attempt, uint64_t lines, LogTail **ret);
LogTail *log_tail_free(LogTail *tail);

/* Adds the bytes that were read to '*work'. 1 when the position is found, with the file in
 * '*ret_fd' positioned there ('*ret_fd' is unchanged if there is no file); 0 if not yet; -errno. */
int log_tail_step(LogTail *tail, size_t *work, int *ret_fd);

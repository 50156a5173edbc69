/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container writes to its standard output and error, on its way into its log.
 *
 * The pipes are the runtime's before they are the container's. Until container_output_commit() what
 * comes through them is held back (in memory that is not the shim's own, and not without limit),
 * because of a start that failed it is the runtime's talk and no container's. */

#include "agent/shim/container-log.h"

typedef struct ContainerOutput ContainerOutput;

/* Opens the log and makes the pipes. 'ret_write_fds' are the ends for the container's descriptors 1
 * and 2, O_CLOEXEC, the caller's to close. 0 or -errno. */
int container_output_new(int epoll_fd, const char *log_path, LogLimits limits,
                         ContainerOutput **ret, int ret_write_fds[2], Error *reterr);

/* The container runs: what was held back is written, and what comes from now on as it comes. */
void container_output_commit(ContainerOutput *output);

/* The container ended: writes what is in the pipes now. What its orphans still write is read until
 * they are gone, or the Output. */
void container_output_drain(ContainerOutput *output);

/* The last line that was held back, of standard error or else of standard output, for a person; in
 * memory that the caller frees, or NULL. */
char *container_output_last_line(ContainerOutput *output);

/* From before the runtime is called on: it hands over a terminal at the socket 'path'. What comes
 * through that is the container's standard output, and what comes through the pipes remains the
 * runtime's own. 0 or -errno. */
int container_output_expect_terminal(ContainerOutput *output, const char *path, Error *reterr);

/* A pipe whose other end stays open as long as the container runs, so that who reads its standard
 * input waits. Gives the container's end, O_CLOEXEC, the caller's to close; or -errno. */
int container_output_open_input(ContainerOutput *output);

/* What the container writes goes to the journal as well. */
void container_output_set_journal_take(ContainerOutput *output, JournalLog *journal);

void container_output_set_limits(ContainerOutput *output, LogLimits limits);

ContainerOutput *container_output_free(ContainerOutput *output);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container's standard output and error, on their way to its log.
 *
 * The pipes are the runtime's before they are the container's. Until container_output_commit()
 * their bytes are held back (in memory outside of the shim's own, and limited): if the start fails,
 * they are the runtime's messages and not the container's output. */

#include "agent/shim/attachments.h"
#include "agent/shim/container-log.h"

typedef struct ContainerOutput ContainerOutput;

/* Opens the log and creates the pipes. 'ret_write_fds' are the ends for the container's descriptors
 * 1 and 2, O_CLOEXEC, to be closed by the caller. 0 or -errno. */
int container_output_new(int epoll_fd, const char *log_path, LogLimits limits,
                         ContainerOutput **ret, int ret_write_fds[2], Error *reterr);

/* The container runs: bytes that were held back are written, and later ones as they arrive. */
void container_output_commit(ContainerOutput *output);

/* The container has ended: writes what is in the pipes now. Output of its orphans is still read
 * until they are gone or the ContainerOutput is freed. */
void container_output_drain(ContainerOutput *output);

/* The last line that was held back, of standard error or else of standard output, for a message; in
 * memory that the caller frees, or NULL. */
char *container_output_last_line(ContainerOutput *output);

/* Called before the runtime, which hands over a terminal at the socket 'path'. The terminal carries
 * the container's standard output; the pipes remain the runtime's own. 0 or -errno. */
int container_output_expect_terminal(ContainerOutput *output, const char *path, Error *reterr);

/* A pipe whose other end stays open as long as the container runs, so that a reader of its standard
 * input waits. Returns the container's end, O_CLOEXEC, to be closed by the caller; or -errno. */
int container_output_open_input(ContainerOutput *output);

/* The first client that is attached also gets what was written before, unless it is too much. */
void container_output_keep_early(ContainerOutput *output);

typedef struct ContainerAttach {
        bool has_output, has_error, has_input; /* what the client requests */
        bool is_input_once; /* the container's input ends with that of the first client that has it
                             */
} ContainerAttach;

/* Attaches a client to the container, which runs: output from now on. Of 'ret', the input and the
 * terminal stay the container's; attachment_streams_close() closes the rest. The number of the
 * attachment, > 0, or -errno. */
int container_output_attach(ContainerOutput *output, const ContainerAttach *attach,
                            AttachmentStreams *ret);

/* The session of an attachment runs, and has its descriptors. */
void container_output_attached(ContainerOutput *output, const ContainerAttach *attach);

/* The session has ended, or could not be started. */
void container_output_detach(ContainerOutput *output, unsigned attachment);

/* The container's output is written to the journal as well. */
void container_output_set_journal_take(ContainerOutput *output, JournalLog *journal);

void container_output_set_limits(ContainerOutput *output, LogLimits limits);

ContainerOutput *container_output_free(ContainerOutput *output);

/* The same for a container that was not created: it leaves no log. */
ContainerOutput *container_output_discard(ContainerOutput *output);

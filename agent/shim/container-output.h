/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container's standard output and error on their way to its log: the shim's part, which creates
 * the pipes and keeps their descriptors, but reads nothing. The copier does (copier.h).
 *
 * The pipes belong to the runtime before they belong to the container. Until
 * container_output_commit(), their bytes are moved into memory files, up to a limit: if the start
 * fails, they are the runtime's messages and not the container's output. */

#include "agent/sandbox/protocol.h"
#include "agent/shim/attachment-streams.h"
#include "agent/shim/copier.h"
#include "agent/shim/rotated-log.h"

typedef struct ContainerOutput ContainerOutput;

/* Opens the log and creates the pipes. Unless 'journal_fields' is empty, the output is also written
 * to the journal, with these fields. 'ret_write_fds' are the ends for the container's descriptors 1
 * and 2, O_CLOEXEC, to be closed by the caller. 0 or -errno. */
int container_output_new(Copier *copier, const char *log_path, LogLimits limits,
                         const StringList *journal_fields, ContainerOutput **ret,
                         int ret_write_fds[2], Error *reterr);

/* The number of this output in messages to the copier. */
unsigned container_output_id(const ContainerOutput *output);

/* To be called when the container is running: copies the data in the pipes, and all later data.
 */
void container_output_commit(ContainerOutput *output);

/* Sends a new copier everything that the earlier one had. */
void container_output_send_all(ContainerOutput *output);

/* The container has ended: COPIER_DRAINED follows when its output is in the log. Output of orphaned
 * processes is still read until they are gone or the ContainerOutput is freed. */
void container_output_drain(ContainerOutput *output);

/* Ends the attachments; to be called when COPIER_DRAINED has arrived or is no longer awaited. */
void container_output_end(ContainerOutput *output);

/* The other messages of the copier. */
void container_output_take_dropped(ContainerOutput *output, unsigned attachment);
void container_output_take_request(ContainerOutput *output, const CopierMessage *request,
                                   CopierMessage *answer);

/* The last line that the runtime wrote to standard error, or else to standard output, for a message
 * about a failed start; the caller frees it, or NULL. */
char *container_output_last_line(ContainerOutput *output);

/* To be called before the runtime, which hands over a terminal through the socket 'path'. The
 * terminal carries the container's standard output; the pipes remain the runtime's. 0 or -errno. */
int container_output_expect_terminal(ContainerOutput *output, const char *path, Error *reterr);

/* A pipe whose other end stays open as long as the container runs, so that a reader of its standard
 * input waits. Returns the container's end, O_CLOEXEC, to be closed by the caller; or -errno. */
int container_output_open_input(ContainerOutput *output);

/* Keeps output for the first attached client, up to a limit. */
void container_output_keep_early(ContainerOutput *output);

typedef struct ContainerAttach {
        bool has_output, has_error, has_input; /* the streams that the client requests */
        bool is_input_once; /* the container's input ends with the input of the first client that
                             * has one */
} ContainerAttach;

/* Attaches a client to the running container; it receives all output from now on. The input and the
 * terminal in 'ret' are borrowed from the container; attachment_streams_close() closes the rest.
 * Returns the number of the attachment, > 0, or -errno. */
int container_output_attach(ContainerOutput *output, const ContainerAttach *attach,
                            AttachmentStreams *ret);

/* The session of an attachment is running, and has its descriptors. */
void container_output_attached(ContainerOutput *output, const ContainerAttach *attach);

/* The session has ended, or could not be started. */
void container_output_detach(ContainerOutput *output, unsigned attachment);

void container_output_set_limits(ContainerOutput *output, LogLimits limits);

ContainerOutput *container_output_free(ContainerOutput *output);

/* The same for a container that was not created, which leaves no log. */
ContainerOutput *container_output_discard(ContainerOutput *output);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pipes between the copier, which writes a container's output to them (attachments.h), and the
 * process of a session (kubectl attach). The shim creates them and keeps copies, so that an
 * attachment survives the replacement of a copier. */

#include "common/macros.h"

#include <stdint.h>

/* The session's ends. Each is -EBADF if there is none. */
typedef struct AttachmentStreams {
        int output_fd; /* output and errors: pipes that are closed at the end of the attachment */
        int error_fd;
        int notice_fd;   /* an eventfd for AttachmentNotice */
        int resume_fd;   /* an eventfd to which the session adds 1 when the pipes are nearly
                          * empty */
        int input_fd;    /* the container's standard input */
        int terminal_fd; /* the master side of the container's terminal */
} AttachmentStreams;

#define ATTACHMENT_STREAMS_NULL \
        ((AttachmentStreams){ -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF })

/* The other ends. */
typedef struct AttachmentEnds {
        int output_fd;
        int error_fd;
        int notice_fd;
        int resume_fd;
} AttachmentEnds;

#define ATTACHMENT_ENDS_NULL ((AttachmentEnds){ -EBADF, -EBADF, -EBADF, -EBADF })

/* The value that the shim adds to the eventfd at the end. */
typedef enum AttachmentNotice {
        ATTACHMENT_ENDED = 1,    /* the container has ended; its remaining output is in the pipes */
        ATTACHMENT_DROPPED = 256 /* the client did not read */
} AttachmentNotice;

/* All descriptors are O_CLOEXEC. The caller closes 'ret_session' once the session runs. 0 or
 * -errno. */
int attachment_streams_open(AttachmentEnds *ret, AttachmentStreams *ret_session);

/* Ends the session's streams, after sending it the reason. */
void attachment_ends_close(AttachmentEnds *ends, AttachmentNotice notice);

/* Closes the descriptors that attachment_streams_open() returned for the session. */
void attachment_streams_close(AttachmentStreams *streams);

/* Whether skipped output may continue. */
bool attachment_pipe_is_nearly_empty(int pipe_fd);

/* For a session with a terminal, after it has read from this pipe. */
void attachment_report_read(const AttachmentStreams *streams, int pipe_fd);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The clients that are attached to a container (kubectl attach): each gets a copy of its output, by
 * pipes to the process of its session. Writing never waits. When a pipe is full, its client does
 * not read fast enough: on a terminal, output is skipped and the client is shown how much; other
 * output must be complete, so the client is dropped.
 *
 * On request what was written before there was a client is kept for the first one: kubectl debug
 * attaches to a container that has started by itself, and may have said all by then. */

#include "common/macros.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Attachment Attachment;

typedef struct Attachments {
        int epoll_fd;
        Attachment *first;
        unsigned last_id;
        bool keeps_early; /* output is kept until there is a client, or too much of it */
        char *early[2];   /* of the output and of the errors; NULL: nothing yet */
        size_t early_length[2];
} Attachments;

typedef struct AttachmentOptions {
        bool has_output; /* the client wants standard output */
        bool has_error;
        bool has_terminal; /* output is for a terminal */
} AttachmentOptions;

/* The session's ends. Each -EBADF where there is none. */
typedef struct AttachmentStreams {
        int output_fd; /* output and errors: pipes that end with the attachment */
        int error_fd;
        int notice_fd;   /* an eventfd: see AttachmentNotice */
        int resume_fd;   /* an eventfd: the session adds 1 when the pipes are nearly empty */
        int input_fd;    /* the container's standard input */
        int terminal_fd; /* the master side of the container's terminal */
} AttachmentStreams;

#define ATTACHMENT_STREAMS_NULL \
        ((AttachmentStreams){ -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF })

/* What the shim adds to the eventfd at the end. */
typedef enum AttachmentNotice {
        ATTACHMENT_ENDED = 1, /* the container has ended; the rest of its output is in the pipes */
        ATTACHMENT_DROPPED = 256 /* the client did not read */
} AttachmentNotice;

/* For the session of a terminal, after it has read from this pipe. */
void attachment_report_read(const AttachmentStreams *streams, int pipe_fd);

/* Adds a client. The first four of 'ret' are for the session, O_CLOEXEC, to be closed by the
 * caller once it runs. The number of the attachment, > 0, or -errno. */
int attachments_add(Attachments *attachments, const AttachmentOptions *options,
                    AttachmentStreams *ret);

/* The session has ended. Unknown numbers are ignored. */
void attachments_remove(Attachments *attachments, unsigned id);

/* Copies output (or errors) to all clients. */
void attachments_write(Attachments *attachments, bool is_error, const char *data, size_t length);

/* The container has ended: so do all attachments, and early output is dropped. */
void attachments_end(Attachments *attachments);

/* Closes the descriptors that attachments_add() gave. */
void attachment_streams_close(AttachmentStreams *streams);

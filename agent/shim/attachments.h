/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The clients that are attached to a container (kubectl attach): each gets a copy of its output, by
 * pipes to the process of its session. Writing never waits. When a pipe is full, its client does
 * not read fast enough: on a terminal, output is skipped and the client is shown how much; other
 * output must be complete, so the client is dropped.
 *
 * On request, output from before there was a client is kept for the first one: kubectl debug
 * attaches to a container that has started by itself, and may have written all its output by
 * then. */

#include "common/buffer.h"
#include "common/macros.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Attachment Attachment;

typedef struct Attachments {
        int epoll_fd;
        Attachment *first;
        /* A client was dropped, and its number is unknown now. */
        void (*on_dropped)(struct Attachments *attachments, unsigned id);
        bool keeps_early; /* output is kept until there is a client, or too much of it */
        Buffer early[2];  /* of the output and of the errors */
} Attachments;

typedef struct AttachmentOptions {
        unsigned id;     /* its number, > 0 */
        bool has_output; /* the client reads standard output */
        bool has_error;
        bool has_terminal; /* output is for a terminal */
        int output_fd;     /* as AttachmentEnds has them */
        int error_fd;
        int resume_fd;
} AttachmentOptions;

/* Adds a client, and owns its descriptors from now on. 0 or -ENOMEM. */
int attachments_add(Attachments *attachments, const AttachmentOptions *options);

/* The session has ended. Unknown numbers are ignored. */
void attachments_remove(Attachments *attachments, unsigned id);

/* Copies output (or errors) to all clients. */
void attachments_write(Attachments *attachments, bool is_error, const char *data, size_t length);

/* The container has ended: so do all attachments, and early output is dropped. */
void attachments_end(Attachments *attachments);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The clients that are attached to a container (kubectl attach): each gets a copy of its output
 * through pipes to the process of its session. Writing never waits. If a pipe is full, its client
 * does not read fast enough: for a terminal, output is skipped and its amount is reported to the
 * client; other output must be complete, so the client is dropped.
 *
 * On request, the output before the first client is kept for that client: kubectl debug attaches to
 * a container that has already started, and that may have written all its output by then. */

#include "common/buffer.h"
#include "common/macros.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Attachment Attachment;

typedef struct Attachments {
        int epoll_fd;
        Attachment *first;
        /* A client was dropped; its number is invalid now. */
        void (*on_dropped)(struct Attachments *attachments, unsigned id);
        bool keeps_early; /* output is kept until there is a client, or until there is too much of
                           * it */
        Buffer early[2];  /* for output and errors */
} Attachments;

typedef struct AttachmentOptions {
        unsigned id;     /* its number, > 0 */
        bool has_output; /* the client reads standard output */
        bool has_error;
        bool has_terminal; /* the client has a terminal */
        int output_fd;     /* as in AttachmentEnds */
        int error_fd;
        int resume_fd;
} AttachmentOptions;

/* Adds a client, and takes ownership of its descriptors. 0 or -ENOMEM. */
int attachments_add(Attachments *attachments, const AttachmentOptions *options);

/* The session has ended. Unknown numbers are ignored. */
void attachments_remove(Attachments *attachments, unsigned id);

/* Copies output (or errors) to all clients. */
void attachments_write(Attachments *attachments, bool is_error, const char *data, size_t length);

/* The container has ended: ends all attachments, and drops early output. */
void attachments_end(Attachments *attachments);

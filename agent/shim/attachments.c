/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/attachments.h"

#include "agent/shim/attachment-streams.h"
#include "agent/shim/epoll-loop.h"
#include "common/cleanup.h"

#include <inttypes.h>

enum {
        EARLY_MAX = 64 * 1024, /* limit for each stream: the capacity of a pipe, regardless of its
                                * size */
};

struct Attachment {
        Attachment *next;
        int epoll_fd;
        AttachmentOptions options;
        EpollSource resume; /* in the loop while output is skipped */
        uint64_t skipped;   /* number of bytes since the pipe was full */
};

static void attachment_free(Attachment *attachment) {
        if (attachment->skipped > 0)
                epoll_source_remove(attachment->epoll_fd, &attachment->resume);
        close_fd(attachment->options.output_fd);
        close_fd(attachment->options.error_fd);
        close_fd(attachment->options.resume_fd);
        free(attachment);
}

static void on_attachment_read(EpollSource *source, uint32_t events);
static bool write_to_attachment(Attachment *attachment, bool is_error, const char *data,
                                size_t length);

/* ---- early output ---- */

static void drop_early_output(Attachments *attachments) {
        attachments->keeps_early = false;
        for (size_t i = 0; i < N_ELEMENTS(attachments->early); i++)
                buffer_done(&attachments->early[i]);
}

/* Early output with a gap would mislead the client, so the client gets all of it or nothing. */
static void keep_early_output(Attachments *attachments, bool is_error, const char *data,
                              size_t length) {
        if (buffer_append(&attachments->early[is_error], data, length, EARLY_MAX) < 0)
                drop_early_output(attachments);
}

static void send_early_output(Attachments *attachments, Attachment *first) {
        for (size_t i = 0; i < N_ELEMENTS(attachments->early); i++)
                if (attachments->early[i].length > 0)
                        (void) write_to_attachment(first, i == 1, attachments->early[i].data,
                                                   attachments->early[i].length);
        drop_early_output(attachments);
}

/* ---- clients ---- */

int attachments_add(Attachments *attachments, const AttachmentOptions *options) {
        Attachment *attachment = malloc(sizeof(*attachment));

        if (!attachment) {
                close_fd(options->output_fd);
                close_fd(options->error_fd);
                close_fd(options->resume_fd);
                return -ENOMEM;
        }
        *attachment = (Attachment){ .next = attachments->first,
                                    .epoll_fd = attachments->epoll_fd,
                                    .options = *options,
                                    .resume = { options->resume_fd, on_attachment_read } };
        attachments->first = attachment;
        send_early_output(attachments, attachment);
        return 0;
}

static void end_attachment(Attachment **link) {
        Attachment *attachment = *link;

        *link = attachment->next;
        attachment_free(attachment);
}

void attachments_remove(Attachments *attachments, unsigned id) {
        for (Attachment **link = &attachments->first; *link; link = &(*link)->next)
                if ((*link)->options.id == id) {
                        end_attachment(link);
                        return;
                }
}

void attachments_end(Attachments *attachments) {
        while (attachments->first)
                end_attachment(&attachments->first);
        drop_early_output(attachments);
}

static size_t write_to_pipe(int fd, const char *data, size_t length) {
        size_t done = 0;

        while (done < length) {
                ssize_t n = write(fd, data + done, length - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break; /* full; or the session is ending and will be removed */
                done += (size_t) n;
        }
        return done;
}

/* When the pipe accepts data again, reports how much was skipped. */
static bool resume_terminal_output(Attachment *attachment) {
        char note[80];
        int n;

        if (attachment->skipped == 0)
                return true;
        if (!attachment_pipe_is_nearly_empty(attachment->options.output_fd))
                return false;
        n = snprintf(note, sizeof(note), "\r\n[%" PRIu64 " bytes were not read in time]\r\n",
                     attachment->skipped);
        /* Short enough to be written to a pipe completely or not at all. */
        if (write(attachment->options.output_fd, note, (size_t) n) != n)
                return false;
        epoll_source_remove(attachment->epoll_fd, &attachment->resume);
        attachment->skipped = 0;
        return true;
}

/* The client reads again. The gap is reported now, because there may be no further output. */
static void on_attachment_read(EpollSource *source, uint32_t events) {
        Attachment *attachment = container_of(source, Attachment, resume);
        uint64_t n;

        if (read(source->fd, &n, sizeof(n)) == sizeof(n))
                (void) resume_terminal_output(attachment);
}

static void write_terminal_output(Attachment *attachment, const char *data, size_t length) {
        size_t done = 0;

        if (resume_terminal_output(attachment))
                done = write_to_pipe(attachment->options.output_fd, data, length);
        if (attachment->skipped == 0 && done < length)
                (void) epoll_source_add(attachment->epoll_fd, &attachment->resume, EPOLLIN);
        attachment->skipped += length - done;
}

/* False: the client has fallen behind. */
static bool write_to_attachment(Attachment *attachment, bool is_error, const char *data,
                                size_t length) {
        if (!(is_error ? attachment->options.has_error : attachment->options.has_output))
                return true;
        if (attachment->options.has_terminal) {
                write_terminal_output(attachment, data, length);
                return true;
        }
        return write_to_pipe(is_error ? attachment->options.error_fd
                                      : attachment->options.output_fd,
                             data, length) == length;
}

void attachments_write(Attachments *attachments, bool is_error, const char *data, size_t length) {
        Attachment **link = &attachments->first;

        if (attachments->keeps_early && length > 0)
                keep_early_output(attachments, is_error, data, length);
        while (*link)
                if (write_to_attachment(*link, is_error, data, length))
                        link = &(*link)->next;
                else {
                        unsigned id = (*link)->options.id;

                        end_attachment(link);
                        attachments->on_dropped(attachments, id);
                }
}

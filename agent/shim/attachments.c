/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/attachments.h"

#include "agent/shim/epoll-loop.h"
#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
        PIPE_SIZE = 1024 * 1024,     /* of each stream of each client */
        PIPE_RESUME = PIPE_SIZE / 4, /* after skipping, output continues when less is in the pipe */
        EARLY_MAX = 64 * 1024        /* of each stream: what a pipe takes, whatever its size */
};

struct Attachment {
        Attachment *next;
        unsigned id;
        int epoll_fd;
        AttachmentOptions options;
        int output_fd; /* our ends */
        int error_fd;
        int notice_fd;
        EpollSource resume; /* in the loop while output is skipped */
        uint64_t skipped;   /* bytes since the pipe was full */
};

static void attachment_free(Attachment *attachment) {
        if (attachment->skipped > 0)
                epoll_source_remove(attachment->epoll_fd, &attachment->resume);
        close_fd(attachment->resume.fd);
        close_fd(attachment->output_fd);
        close_fd(attachment->error_fd);
        close_fd(attachment->notice_fd);
        free(attachment);
}

void attachment_streams_close(AttachmentStreams *streams) {
        close_fd(streams->output_fd);
        close_fd(streams->error_fd);
        close_fd(streams->notice_fd);
        close_fd(streams->resume_fd);
        *streams = ATTACHMENT_STREAMS_NULL;
}

/* The size is a request: without it the client is only slower sooner. */
static int open_attachment_pipe(int *ret_read_fd, int *ret_write_fd) {
        int pipes[2];

        if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        (void) fcntl(pipes[1], F_SETPIPE_SZ, PIPE_SIZE);
        *ret_read_fd = pipes[0];
        *ret_write_fd = pipes[1];
        return 0;
}

static int open_attachment_event(int *ret_own_fd, int *ret_session_fd) {
        *ret_own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        *ret_session_fd = *ret_own_fd < 0 ? -1 : fcntl(*ret_own_fd, F_DUPFD_CLOEXEC, 3);
        return *ret_session_fd < 0 ? -errno : 0;
}

static int open_attachment(Attachment *attachment, AttachmentStreams *ret) {
        int r = open_attachment_pipe(&ret->output_fd, &attachment->output_fd);

        if (r < 0)
                return r;
        r = open_attachment_pipe(&ret->error_fd, &attachment->error_fd);
        if (r < 0)
                return r;
        r = open_attachment_event(&attachment->notice_fd, &ret->notice_fd);
        if (r < 0)
                return r;
        return open_attachment_event(&attachment->resume.fd, &ret->resume_fd);
}

static void on_attachment_read(EpollSource *source, uint32_t events);
static bool write_to_attachment(Attachment *attachment, bool is_error, const char *data,
                                size_t length);

/* ---- early output ---- */

static void drop_early_output(Attachments *attachments) {
        attachments->keeps_early = false;
        for (size_t i = 0; i < N_ELEMENTS(attachments->early); i++) {
                free(TAKE_PTR(attachments->early[i]));
                attachments->early_length[i] = 0;
        }
}

/* The client of a beginning with a gap would be misled: it gets all of it, or nothing. */
static void keep_early_output(Attachments *attachments, bool is_error, const char *data,
                              size_t length) {
        size_t *total = &attachments->early_length[is_error];
        char *larger = length <= EARLY_MAX - *total
                               ? realloc(attachments->early[is_error], *total + length)
                               : NULL;

        if (!larger) {
                drop_early_output(attachments);
                return;
        }
        memcpy(larger + *total, data, length);
        attachments->early[is_error] = larger;
        *total += length;
}

static void send_early_output(Attachments *attachments, Attachment *first) {
        for (size_t i = 0; i < N_ELEMENTS(attachments->early); i++)
                if (attachments->early_length[i] > 0)
                        (void) write_to_attachment(first, i == 1, attachments->early[i],
                                                   attachments->early_length[i]);
        drop_early_output(attachments);
}

/* ---- clients ---- */

int attachments_add(Attachments *attachments, const AttachmentOptions *options,
                    AttachmentStreams *ret) {
        Attachment *attachment = malloc(sizeof(*attachment));
        AttachmentStreams streams = ATTACHMENT_STREAMS_NULL;
        int r;

        if (!attachment)
                return -ENOMEM;
        *attachment = (Attachment){ .epoll_fd = attachments->epoll_fd,
                                    .options = *options,
                                    .resume = { -EBADF, on_attachment_read },
                                    .output_fd = -EBADF,
                                    .error_fd = -EBADF,
                                    .notice_fd = -EBADF };
        r = open_attachment(attachment, &streams);
        if (r < 0) {
                attachment_streams_close(&streams);
                attachment_free(attachment);
                return r;
        }
        attachment->id = ++attachments->last_id;
        attachment->next = attachments->first;
        attachments->first = attachment;
        *ret = streams;
        send_early_output(attachments, attachment);
        return (int) attachment->id;
}

static void end_attachment(Attachment **link, AttachmentNotice notice) {
        Attachment *attachment = *link;
        uint64_t value = notice;

        /* Before the pipes end, so that the session knows why. */
        (void) !write(attachment->notice_fd, &value, sizeof(value));
        *link = attachment->next;
        attachment_free(attachment);
}

void attachments_remove(Attachments *attachments, unsigned id) {
        for (Attachment **link = &attachments->first; *link; link = &(*link)->next)
                if ((*link)->id == id) {
                        end_attachment(link, ATTACHMENT_ENDED);
                        return;
                }
}

void attachments_end(Attachments *attachments) {
        while (attachments->first)
                end_attachment(&attachments->first, ATTACHMENT_ENDED);
        drop_early_output(attachments);
}

static size_t write_to_pipe(int fd, const char *data, size_t length) {
        size_t done = 0;

        while (done < length) {
                ssize_t n = write(fd, data + done, length - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break; /* full; or the session is ending, and will be removed */
                done += (size_t) n;
        }
        return done;
}

static bool is_nearly_empty(int pipe_fd) {
        int in_pipe = 0;

        return ioctl(pipe_fd, FIONREAD, &in_pipe) >= 0 && in_pipe <= PIPE_RESUME;
}

void attachment_report_read(const AttachmentStreams *streams, int pipe_fd) {
        static const uint64_t one = 1;

        if (is_nearly_empty(pipe_fd))
                (void) !write(streams->resume_fd, &one, sizeof(one));
}

/* Reports what was skipped, once the pipe takes more. */
static bool resume_terminal_output(Attachment *attachment) {
        char note[80];
        int n;

        if (attachment->skipped == 0)
                return true;
        if (!is_nearly_empty(attachment->output_fd))
                return false;
        n = snprintf(note, sizeof(note), "\r\n[%" PRIu64 " bytes were not read in time]\r\n",
                     attachment->skipped);
        /* Short enough for a pipe to take it as a whole or not at all. */
        if (write(attachment->output_fd, note, (size_t) n) != n)
                return false;
        epoll_source_remove(attachment->epoll_fd, &attachment->resume);
        attachment->skipped = 0;
        return true;
}

/* The client reads again; there may be no more output that would show it what it has missed. */
static void on_attachment_read(EpollSource *source, uint32_t events) {
        Attachment *attachment = container_of(source, Attachment, resume);
        uint64_t n;

        if (read(source->fd, &n, sizeof(n)) == sizeof(n))
                (void) resume_terminal_output(attachment);
}

static void write_terminal_output(Attachment *attachment, const char *data, size_t length) {
        size_t done = 0;

        if (resume_terminal_output(attachment))
                done = write_to_pipe(attachment->output_fd, data, length);
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
        return write_to_pipe(is_error ? attachment->error_fd : attachment->output_fd, data,
                             length) == length;
}

void attachments_write(Attachments *attachments, bool is_error, const char *data, size_t length) {
        Attachment **link = &attachments->first;

        if (attachments->keeps_early && length > 0)
                keep_early_output(attachments, is_error, data, length);
        while (*link)
                if (write_to_attachment(*link, is_error, data, length))
                        link = &(*link)->next;
                else
                        end_attachment(link, ATTACHMENT_DROPPED);
}

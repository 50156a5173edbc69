/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/attachment-streams.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

enum {
        PIPE_SIZE = 1024 * 1024,     /* size of each stream's pipe, for each client */
        PIPE_RESUME = PIPE_SIZE / 4, /* after skipping, output continues when the pipe contains
                                      * less */
};

/* The kernel may refuse the size, in which case a slow client is affected sooner. */
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

static int open_attachment_streams(AttachmentEnds *ends, AttachmentStreams *streams) {
        int r = open_attachment_pipe(&streams->output_fd, &ends->output_fd);

        if (r < 0)
                return r;
        r = open_attachment_pipe(&streams->error_fd, &ends->error_fd);
        if (r < 0)
                return r;
        r = open_attachment_event(&ends->notice_fd, &streams->notice_fd);
        if (r < 0)
                return r;
        return open_attachment_event(&ends->resume_fd, &streams->resume_fd);
}

int attachment_streams_open(AttachmentEnds *ret, AttachmentStreams *ret_session) {
        AttachmentEnds ends = ATTACHMENT_ENDS_NULL;
        AttachmentStreams streams = ATTACHMENT_STREAMS_NULL;
        int r = open_attachment_streams(&ends, &streams);

        if (r < 0) {
                attachment_streams_close(&streams);
                attachment_ends_close(&ends, ATTACHMENT_ENDED);
                return r;
        }
        *ret = ends;
        *ret_session = streams;
        return 0;
}

void attachment_ends_close(AttachmentEnds *ends, AttachmentNotice notice) {
        uint64_t value = notice;

        /* The reason is sent before the pipes are closed, so that the session has it when they end.
         */
        if (ends->notice_fd >= 0)
                (void) !write(ends->notice_fd, &value, sizeof(value));
        close_fd(ends->output_fd);
        close_fd(ends->error_fd);
        close_fd(ends->notice_fd);
        close_fd(ends->resume_fd);
        *ends = ATTACHMENT_ENDS_NULL;
}

void attachment_streams_close(AttachmentStreams *streams) {
        close_fd(streams->output_fd);
        close_fd(streams->error_fd);
        close_fd(streams->notice_fd);
        close_fd(streams->resume_fd);
        *streams = ATTACHMENT_STREAMS_NULL;
}

bool attachment_pipe_is_nearly_empty(int pipe_fd) {
        int in_pipe = 0;

        return ioctl(pipe_fd, FIONREAD, &in_pipe) >= 0 && in_pipe <= PIPE_RESUME;
}

void attachment_report_read(const AttachmentStreams *streams, int pipe_fd) {
        static const uint64_t one = 1;

        if (attachment_pipe_is_nearly_empty(pipe_fd))
                (void) !write(streams->resume_fd, &one, sizeof(one));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/container-output.h"

#include "agent/shim/epoll-loop.h"
#include "agent/shim/terminal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum {
        CHUNK_SIZE = 32 * 1024,
        CHUNKS_PER_TURN = 4,         /* then other containers get their turn */
        HOLD_MAX = 16 * 1024 * 1024, /* beyond it, the writer waits for the runtime call to end */
        LAST_LINE_MAX = 4 * 1024,
        TERMINAL_DRAIN_MAX = 128 * 1024, /* more than the kernel buffers of a terminal */
};

typedef struct OutputStream {
        EpollSource source;
        ContainerOutput *output;
        LogStreamBuffer lines;
        int hold_fd; /* a memfd, created when bytes arrive before the commit */
        size_t held;
} OutputStream;

enum {
        OUTPUT_STREAM_STDOUT,
        OUTPUT_STREAM_STDERR,
        OUTPUT_STREAM_TERMINAL,
        N_OUTPUT_STREAMS,
};

struct ContainerOutput {
        int epoll_fd;
        ContainerLog *log;
        bool committed;
        Terminal *terminal; /* NULL: without a terminal */
        int input_fd;
        Attachments attachments;
        OutputStream streams[N_OUTPUT_STREAMS];
};

static void close_output_stream(OutputStream *stream) {
        epoll_source_remove(stream->output->epoll_fd, &stream->source);
        stream->source.fd = close_fd(stream->source.fd);
}

static void end_output_stream(OutputStream *stream) {
        close_output_stream(stream);
        if (stream->output->committed)
                container_log_end_line(stream->output->log, &stream->lines, now_realtime_usec());
}

/* Keeps bytes for later. When the limit is reached we stop reading; a runtime that writes so much
 * is ended by the deadline of its call. */
static void hold_output_bytes(OutputStream *stream, const char *data, size_t length) {
        if (stream->hold_fd < 0)
                stream->hold_fd = memfd_create("mainstay-output", MFD_CLOEXEC);
        if (stream->hold_fd >= 0 && write_all(stream->hold_fd, data, length) >= 0)
                stream->held += length;
        if (stream->held >= HOLD_MAX)
                (void) epoll_source_change(stream->output->epoll_fd, &stream->source, 0);
}

static void take_output_bytes(OutputStream *stream, const char *data, size_t length) {
        ContainerOutput *output = stream->output;

        if (!output->committed) {
                hold_output_bytes(stream, data, length);
                return;
        }
        container_log_write(output->log, &stream->lines, data, length, now_realtime_usec());
        attachments_write(&output->attachments, stream == &output->streams[OUTPUT_STREAM_STDERR],
                          data, length);
}

/* Reads at most 'max' of the available bytes. */
static void read_output_stream(OutputStream *stream, size_t max) {
        char chunk[CHUNK_SIZE];

        while (max > 0 && stream->source.fd >= 0) {
                ssize_t n = read(stream->source.fd, chunk, MIN(max, sizeof(chunk)));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        end_output_stream(stream);
                        return;
                }
                take_output_bytes(stream, chunk, (size_t) n);
                max -= (size_t) n;
        }
}

static void on_output_readable(EpollSource *source, uint32_t events) {
        read_output_stream(container_of(source, OutputStream, source),
                           (size_t) CHUNKS_PER_TURN * CHUNK_SIZE);
}

static int open_output_stream(ContainerOutput *output, OutputStream *stream, int *ret_write_fd) {
        int pipes[2], r;

        r = pipe_open(PIPE_READ_END, pipes);
        if (r < 0)
                return r;
        stream->source.fd = pipes[PIPE_READ_END];
        *ret_write_fd = pipes[PIPE_WRITE_END];
        return epoll_source_add(output->epoll_fd, &stream->source, EPOLLIN);
}

int container_output_new(int epoll_fd, const char *log_path, LogLimits limits,
                         ContainerOutput **ret, int ret_write_fds[2], Error *reterr) {
        static const char *const names[] = { "stdout", "stderr", "stdout" };
        ContainerOutput *output = calloc(1, sizeof(*output));
        int write_fds[2] = { -EBADF, -EBADF };
        int r;

        if (!output)
                return -ENOMEM;
        output->epoll_fd = output->attachments.epoll_fd = epoll_fd;
        output->input_fd = -EBADF;
        for (size_t i = 0; i < N_OUTPUT_STREAMS; i++)
                output->streams[i] = (OutputStream){
                        .source = { .fd = -EBADF, .on_ready = on_output_readable },
                        .output = output,
                        .lines.name = names[i],
                        .hold_fd = -EBADF,
                };
        r = container_log_open(log_path, limits, &output->log, reterr);
        for (size_t i = 0; r >= 0 && i < 2; i++)
                r = open_output_stream(output, &output->streams[i], &write_fds[i]);
        if (r < 0) {
                close_fd(write_fds[0]);
                close_fd(write_fds[1]);
                container_output_free(output);
                return r;
        }
        memcpy(ret_write_fds, write_fds, sizeof(write_fds));
        *ret = output;
        return 0;
}

/* From now on the pipes are unused: the runtime's messages are in its log. */
static void on_container_terminal(int master_fd, void *userdata) {
        ContainerOutput *output = userdata;
        OutputStream *stream = &output->streams[OUTPUT_STREAM_TERMINAL];

        stream->source.fd = master_fd;
        if (epoll_source_add(output->epoll_fd, &stream->source, EPOLLIN) < 0)
                close_output_stream(stream);
}

int container_output_expect_terminal(ContainerOutput *output, const char *path, Error *reterr) {
        return terminal_new(output->epoll_fd, path, on_container_terminal, output,
                            &output->terminal, reterr);
}

int container_output_open_input(ContainerOutput *output) {
        int pipes[2], r;

        /* The process of a session does not wait for the container. */
        r = pipe_open(PIPE_WRITE_END, pipes);
        if (r < 0)
                return r;
        close_fd(output->input_fd);
        output->input_fd = pipes[PIPE_WRITE_END];
        return pipes[PIPE_READ_END];
}

void container_output_keep_early(ContainerOutput *output) {
        output->attachments.keeps_early = true;
}

int container_output_attach(ContainerOutput *output, const ContainerAttach *attach,
                            AttachmentStreams *ret) {
        int terminal_fd = output->streams[OUTPUT_STREAM_TERMINAL].source.fd;
        AttachmentStreams streams;
        int r = attachments_add(&output->attachments,
                                &(AttachmentOptions){ .has_output = attach->has_output,
                                                      .has_error = attach->has_error,
                                                      .has_terminal = terminal_fd >= 0 },
                                &streams);

        if (r < 0)
                return r;
        streams.terminal_fd = terminal_fd;
        if (attach->has_input)
                streams.input_fd = terminal_fd >= 0 ? terminal_fd : output->input_fd;
        *ret = streams;
        return r;
}

void container_output_attached(ContainerOutput *output, const ContainerAttach *attach) {
        /* Now the session alone can write: the container's input ends with it. */
        if (attach->has_input && attach->is_input_once)
                output->input_fd = close_fd(output->input_fd);
}

void container_output_detach(ContainerOutput *output, unsigned attachment) {
        attachments_remove(&output->attachments, attachment);
}

static void write_held_output(OutputStream *stream) {
        char chunk[CHUNK_SIZE];
        off_t offset = 0;
        ssize_t n;

        if (stream->hold_fd < 0)
                return;
        while ((n = pread(stream->hold_fd, chunk, sizeof(chunk), offset)) > 0) {
                take_output_bytes(stream, chunk, (size_t) n);
                offset += n;
        }
        stream->hold_fd = close_fd(stream->hold_fd);
        if (stream->source.fd < 0) /* it has ended in the meantime */
                end_output_stream(stream);
        else
                (void) epoll_source_change(stream->output->epoll_fd, &stream->source, EPOLLIN);
}

/* The pipes carried only the runtime's messages, and nothing else writes into them. */
static void discard_output_pipes(ContainerOutput *output) {
        for (size_t i = 0; i < OUTPUT_STREAM_TERMINAL; i++) {
                OutputStream *stream = &output->streams[i];

                close_output_stream(stream);
                stream->hold_fd = close_fd(stream->hold_fd);
        }
}

void container_output_commit(ContainerOutput *output) {
        if (output->terminal) {
                terminal_receive_master(output->terminal);
                output->terminal = terminal_free(output->terminal);
                discard_output_pipes(output);
        }
        output->committed = true;
        for (size_t i = 0; i < N_OUTPUT_STREAMS; i++)
                write_held_output(&output->streams[i]);
}

void container_output_drain(ContainerOutput *output) {
        output->input_fd = close_fd(output->input_fd);
        for (size_t i = 0; i < N_OUTPUT_STREAMS; i++) {
                OutputStream *stream = &output->streams[i];
                int n = 0;

                /* All that the container wrote is in the pipe by now. Do not read until EAGAIN: an
                 * orphan that never stops writing would keep us here. */
                if (stream->source.fd < 0)
                        continue;
                if (i == OUTPUT_STREAM_TERMINAL) /* which reports only while it is read */
                        n = TERMINAL_DRAIN_MAX;
                else
                        (void) ioctl(stream->source.fd, FIONREAD, &n);
                if (n > 0)
                        read_output_stream(stream, (size_t) n);
                container_log_end_line(output->log, &stream->lines, now_realtime_usec());
        }
        attachments_end(&output->attachments);
}

static char *last_line_of(OutputStream *stream) {
        char text[LAST_LINE_MAX + 1], *newline;
        ssize_t n;

        if (stream->held == 0)
                return NULL;
        n = pread(stream->hold_fd, text, LAST_LINE_MAX,
                  (off_t) (stream->held - MIN(stream->held, (size_t) LAST_LINE_MAX)));
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' ' || text[n - 1] == '\0'))
                n--;
        if (n <= 0)
                return NULL;
        text[n] = '\0';
        newline = memrchr(text, '\n', (size_t) n);
        return strdup(newline ? newline + 1 : text);
}

char *container_output_last_line(ContainerOutput *output) {
        char *line;

        for (size_t i = 0; i < 2; i++)
                if (output->streams[i].source.fd >= 0)
                        read_output_stream(&output->streams[i], HOLD_MAX);
        line = last_line_of(&output->streams[1]);
        return line ? line : last_line_of(&output->streams[0]);
}

void container_output_set_journal_take(ContainerOutput *output, JournalLog *journal) {
        container_log_set_journal_take(output->log, journal);
}

void container_output_set_limits(ContainerOutput *output, LogLimits limits) {
        container_log_set_limits(output->log, limits);
}

ContainerOutput *container_output_free(ContainerOutput *output) {
        if (!output)
                return NULL;
        attachments_end(&output->attachments);
        terminal_free(output->terminal);
        close_fd(output->input_fd);
        for (size_t i = 0; i < N_OUTPUT_STREAMS; i++) {
                OutputStream *stream = &output->streams[i];

                if (stream->source.fd >= 0)
                        close_output_stream(stream);
                if (output->committed)
                        container_log_end_line(output->log, &stream->lines, now_realtime_usec());
                log_stream_buffer_done(&stream->lines);
                close_fd(stream->hold_fd);
        }
        container_log_free(output->log);
        free(output);
        return NULL;
}

ContainerOutput *container_output_discard(ContainerOutput *output) {
        if (output)
                container_log_remove_empty(output->log);
        return container_output_free(output);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/copier-process.h"

#include "agent/shim/attachments.h"
#include "agent/shim/capture.h"
#include "agent/shim/container-log.h"
#include "agent/shim/copier-channel.h"
#include "agent/shim/epoll-loop.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/memory-trim.h"

#include <sys/ioctl.h>

enum {
        CHUNK_SIZE = 32 * 1024,
        CHUNKS_PER_TURN = 4,             /* then other containers have their turn */
        TERMINAL_DRAIN_MAX = 128 * 1024, /* more than the kernel buffers of a terminal */
        MESSAGES_PER_TURN = 16,
};

typedef struct CopierProcess CopierProcess;
typedef struct CopiedOutput CopiedOutput;
typedef struct CopiedCapture CopiedCapture;

typedef struct OutputStream {
        EpollSource source;
        CopiedOutput *output;
        LogStreamBuffer lines;
} OutputStream;

enum {
        OUTPUT_STREAM_STDOUT,
        OUTPUT_STREAM_STDERR,
        OUTPUT_STREAM_TERMINAL,
        N_OUTPUT_STREAMS,
};

struct CopiedOutput {
        CopiedOutput *next;
        CopierProcess *process;
        unsigned id;
        ContainerLog *log;
        Attachments attachments;
        OutputStream streams[N_OUTPUT_STREAMS];
};

struct CopiedCapture {
        CopiedCapture *next;
        unsigned id;
        Capture capture;
};

struct CopierProcess {
        int epoll_fd;
        EpollSource socket;
        int files_fd;
        bool is_over;
        bool has_drained; /* in this turn */
        CopiedOutput *outputs;
        CopiedCapture *captures;
};

/* The data that was read last, from a container or a message. It is static, because on the stack
 * each of its pages would be touched. */
static char buffer[COPIER_DATA_MAX + 1];

static void send_to_shim(const CopierProcess *process, const CopierMessage *message,
                         const void *data, size_t length) {
        (void) copier_channel_write(process->socket.fd, message, data, length);
}

/* ---- streams ---- */

static void close_output_stream(OutputStream *stream) {
        epoll_source_remove(stream->output->process->epoll_fd, &stream->source);
        stream->source.fd = close_fd(stream->source.fd);
}

/* The bytes in 'buffer'. */
static void copy_output(OutputStream *stream, size_t length) {
        CopiedOutput *output = stream->output;
        bool is_error = stream == &output->streams[OUTPUT_STREAM_STDERR];

        container_log_write(output->log, &stream->lines, buffer, length, now_realtime_usec());
        attachments_write(&output->attachments, is_error, buffer, length);
}

/* Reads at most 'max' of the available bytes. */
static void read_output_stream(OutputStream *stream, size_t max) {
        while (max > 0 && stream->source.fd >= 0) {
                ssize_t n = read(stream->source.fd, buffer, MIN(max, (size_t) CHUNK_SIZE));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        close_output_stream(stream);
                        container_log_end_line(stream->output->log, &stream->lines,
                                               now_realtime_usec());
                        return;
                }
                copy_output(stream, (size_t) n);
                max -= (size_t) n;
        }
}

/* A file with earlier output. */
static void copy_held_output(OutputStream *stream, int fd) {
        ssize_t n;

        while (fd >= 0 && (n = read(fd, buffer, CHUNK_SIZE)) > 0)
                copy_output(stream, (size_t) n);
}

static void on_output_readable(EpollSource *source, uint32_t events) {
        DIE_AT("copier.output");
        read_output_stream(container_of(source, OutputStream, source),
                           (size_t) CHUNKS_PER_TURN * CHUNK_SIZE);
}

/* All of the container's output is in the pipe by now. The pipe must not be read until EAGAIN,
 * because an orphan that never stops writing would block the copier. */
static void drain_output(CopiedOutput *output) {
        for (size_t i = 0; i < N_OUTPUT_STREAMS; i++) {
                OutputStream *stream = &output->streams[i];
                int n = 0;

                if (stream->source.fd < 0)
                        continue;
                if (i == OUTPUT_STREAM_TERMINAL) /* which reports its data only while it is read */
                        n = TERMINAL_DRAIN_MAX;
                else
                        (void) ioctl(stream->source.fd, FIONREAD, &n);
                if (n > 0)
                        read_output_stream(stream, (size_t) n);
                container_log_end_line(output->log, &stream->lines, now_realtime_usec());
        }
        attachments_end(&output->attachments);
}

/* ---- files that the shim opens ---- */

/* The descriptor, or -errno. */
static int request_fd(const CopierProcess *process, CopierMessageType type, unsigned id, int which,
                      bool *ret_is_rotated) {
        const CopierMessage request = COPIER_MESSAGE(type, id);
        cleanup_copier_message CopierMessage answer = COPIER_MESSAGE(COPIER_ANSWER, 0);
        ssize_t n;
        int r = copier_channel_write(process->files_fd, &request, NULL, 0);

        if (r < 0)
                return r;
        n = copier_channel_receive(process->files_fd, /* waits= */ true, &answer, NULL, 0);
        if (n < 0)
                return (int) n;
        if (ret_is_rotated)
                *ret_is_rotated = answer.is_rotated;
        if (answer.result < 0 || answer.fds[which] < 0)
                return answer.result < 0 ? answer.result : -EBADF;
        return TAKE_FD(answer.fds[which]);
}

static int open_log_of_output(void *userdata, LogRequest request, uint64_t realtime_usec,
                              OpenedLog *ret) {
        const CopiedOutput *output = userdata;
        int fd = request_fd(output->process,
                            request == LOG_REQUEST_ROTATE ? COPIER_ROTATE : COPIER_OPEN, output->id,
                            COPIER_FD_LOG, &ret->is_rotated);

        if (fd < 0)
                return fd;
        ret->fd = fd;
        return 0;
}

static int open_journal_of_output(void *userdata) {
        const CopiedOutput *output = userdata;

        return request_fd(output->process, COPIER_JOURNAL, output->id, COPIER_FD_OUTPUT, NULL);
}

/* ---- outputs ---- */

static CopiedOutput *find_output(const CopierProcess *process, unsigned id) {
        CopiedOutput *output = process->outputs;

        while (output && output->id != id)
                output = output->next;
        return output;
}

static void on_attachment_dropped(Attachments *attachments, unsigned id) {
        CopiedOutput *output = container_of(attachments, CopiedOutput, attachments);
        CopierMessage message = COPIER_MESSAGE(COPIER_DROPPED, output->id);

        message.attachment = id;
        send_to_shim(output->process, &message, NULL, 0);
}

static CopiedOutput *output_free(CopiedOutput *output) {
        if (!output)
                return NULL;
        attachments_end(&output->attachments);
        for (size_t i = 0; i < N_OUTPUT_STREAMS; i++) {
                OutputStream *stream = &output->streams[i];

                if (stream->source.fd >= 0)
                        close_output_stream(stream);
                if (output->log)
                        container_log_end_line(output->log, &stream->lines, now_realtime_usec());
                log_stream_buffer_done(&stream->lines);
        }
        container_log_free(output->log);
        free(output);
        return NULL;
}
DEFINE_CLEANUP(CopiedOutput *, output_free)

static CopiedOutput *output_new(CopierProcess *process, CopierMessage *message) {
        static const char *const names[] = { "stdout", "stderr", "stdout" };
        CopiedOutput *output = calloc(1, sizeof(*output));

        if (!output)
                return NULL;
        output->process = process;
        output->id = message->id;
        output->attachments.epoll_fd = process->epoll_fd;
        output->attachments.on_dropped = on_attachment_dropped;
        output->attachments.keeps_early = message->keeps_early;
        for (size_t i = 0; i < N_OUTPUT_STREAMS; i++)
                output->streams[i] = (OutputStream){
                        .source = { TAKE_FD(message->fds[i]), on_output_readable },
                        .output = output,
                        .lines.name = names[i],
                };
        return output;
}

static int add_journal(CopiedOutput *output, const char *fields) {
        const JournalSocket socket = { .open = open_journal_of_output,
                                       .userdata = output,
                                       .fd = -EBADF };
        JournalLog *journal;
        int r = journal_log_new(&socket, fields, &journal);

        if (r < 0)
                return r;
        container_log_set_journal_take(output->log, journal);
        return 0;
}

static int add_output(CopierProcess *process, CopierMessage *message, const char *fields) {
        cleanup_with(output_freep) CopiedOutput *output = output_new(process, message);
        const LogOpener opener = { open_log_of_output, output };
        int r = output ? container_log_new(TAKE_FD(message->fds[COPIER_FD_LOG]),
                                           (LogLimits){ message->max_size, message->max_files },
                                           &opener, &output->log)
                       : -ENOMEM;

        if (r >= 0 && message->has_journal)
                r = add_journal(output, fields);
        for (size_t i = 0; r >= 0 && i < 2; i++)
                copy_held_output(&output->streams[i], message->fds[COPIER_FD_HELD_OUTPUT + i]);
        for (size_t i = 0; r >= 0 && i < N_OUTPUT_STREAMS; i++)
                if (output->streams[i].source.fd >= 0)
                        r = epoll_source_add(process->epoll_fd, &output->streams[i].source,
                                             EPOLLIN);
        if (r < 0)
                return r;
        output->next = process->outputs;
        process->outputs = TAKE_PTR(output);
        return 0;
}

static void remove_output(CopierProcess *process, CopiedOutput *output) {
        CopiedOutput **link = &process->outputs;

        while (*link != output)
                link = &(*link)->next;
        *link = output->next;
        drain_output(output);
        output_free(output);
}

static void attach_client(CopiedOutput *output, CopierMessage *message) {
        const AttachmentOptions options = {
                .id = message->attachment,
                .has_output = message->has_output,
                .has_error = message->has_error,
                .has_terminal = message->has_terminal,
                .output_fd = TAKE_FD(message->fds[COPIER_FD_OUTPUT]),
                .error_fd = TAKE_FD(message->fds[COPIER_FD_ERROR]),
                .resume_fd = TAKE_FD(message->fds[COPIER_FD_RESUME]),
        };

        if (attachments_add(&output->attachments, &options) < 0)
                on_attachment_dropped(&output->attachments, options.id);
}

/* ---- captures ---- */

static int add_capture(CopierProcess *process, CopierMessage *message) {
        CopiedCapture *item = calloc(1, sizeof(*item));
        int r;

        if (!item)
                return -ENOMEM;
        item->id = message->id;
        r = capture_open(&item->capture, process->epoll_fd, TAKE_FD(message->fds[COPIER_FD_OUTPUT]),
                         message->max_size);
        if (r < 0) {
                capture_done(&item->capture);
                free(item);
                return r;
        }
        item->next = process->captures;
        process->captures = item;
        return 0;
}

/* If the output is unknown, there was no memory for it, or its copier was replaced, so nothing was
 * captured. */
static void finish_capture(CopierProcess *process, unsigned id) {
        const CopierMessage message = COPIER_MESSAGE(COPIER_CAPTURED, id);
        CopiedCapture **link = &process->captures, *item;

        while (*link && (*link)->id != id)
                link = &(*link)->next;
        item = *link;
        if (item) {
                *link = item->next;
                capture_read(&item->capture);
        }
        send_to_shim(process, &message, item ? item->capture.text : NULL,
                     item ? item->capture.length : 0);
        if (item)
                capture_done(&item->capture);
        free(item);
}

/* ---- the process ---- */

static void handle_output_message(CopierProcess *process, CopiedOutput *output,
                                  CopierMessage *message) {
        const CopierMessage drained = COPIER_MESSAGE(COPIER_DRAINED, message->id);

        switch (message->type) {
        case COPIER_LIMITS:
                container_log_set_limits(output->log,
                                         (LogLimits){ message->max_size, message->max_files });
                break;
        case COPIER_DRAIN:
                drain_output(output);
                process->has_drained = true;
                send_to_shim(process, &drained, NULL, 0);
                break;
        case COPIER_REMOVE:
                remove_output(process, output);
                break;
        case COPIER_ATTACH:
                attach_client(output, message);
                break;
        case COPIER_DETACH:
                attachments_remove(&output->attachments, message->attachment);
                break;
        default:
                break;
        }
}

static int handle_shim_message(CopierProcess *process, CopierMessage *message, const char *data) {
        CopiedOutput *output = find_output(process, message->id);

        switch (message->type) {
        case COPIER_ADD:
                return add_output(process, message, data);
        case COPIER_CAPTURE:
                return add_capture(process, message);
        case COPIER_FINISH:
                finish_capture(process, message->id);
                return 0;
        default:
                if (output)
                        handle_output_message(process, output, message);
                return 0;
        }
}

/* If there is no memory for an output, the process exits, and the shim starts another one, which
 * gets all outputs. */
static int receive_shim_message(CopierProcess *process) {
        cleanup_copier_message CopierMessage message = COPIER_MESSAGE(COPIER_ANSWER, 0);
        ssize_t n = copier_channel_receive(process->socket.fd, /* waits= */ false, &message, buffer,
                                           COPIER_DATA_MAX);

        if (n < 0)
                return n == -EBADMSG ? 0 : (int) n;
        buffer[n] = '\0';
        return handle_shim_message(process, &message, buffer);
}

static void on_copier_command(EpollSource *source, uint32_t events) {
        CopierProcess *process = container_of(source, CopierProcess, socket);
        int r = 0;

        process->has_drained = false;
        for (unsigned i = 0; i < MESSAGES_PER_TURN && r >= 0; i++)
                r = receive_shim_message(process);
        process->is_over = r < 0 && r != -EAGAIN;
        /* A container that has exited may be restarted at once: the trim would compete with its
         * start, and follows when its new output is added. */
        if (!process->has_drained)
                memory_trim();
}

_Noreturn void copier_process_run(int socket_fd, int files_fd) {
        CopierProcess process = {
                .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                .socket = { socket_fd, on_copier_command },
                .files_fd = files_fd,
        };
        int r = process.epoll_fd < 0 ? -errno
                                     : epoll_source_add(process.epoll_fd, &process.socket, EPOLLIN);

        while (r >= 0 && !process.is_over)
                r = epoll_loop_run_once(process.epoll_fd, USEC_INFINITY);
        while (process.outputs)
                remove_output(&process, process.outputs);
        _exit(-MAX(r, -UINT8_MAX));
}

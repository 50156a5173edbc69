/* SPDX-License-Identifier: Apache-2.0 */
/* The command's streams are pipes, or a terminal that the runtime creates; the client's streams are
 * WebSocket channels. Data is read only when it can be passed on: a client that does not read
 * blocks the command, a command that does not read blocks the client, and neither uses memory.
 *
 * A session that is attached to a container has no command: its streams are the container's, which
 * the log copier copies (attachments.h), and it ends with the container. */

#include "agent/shim/session-run.h"

#include "agent/shim/copier-channel.h"
#include "agent/shim/epoll-loop.h"
#include "agent/shim/session-status.h"
#include "agent/shim/shim-confine.h"
#include "common/buffer.h"
#include "common/channels.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/pipe.h"
#include "common/text.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

/* Time limits for output from the command's children after it has ended, for a client that does not
 * read, and for a client that does not close the connection. */
#define DRAIN_USEC        (500 * USEC_PER_MSEC)
#define CLIENT_STALL_USEC (10 * USEC_PER_SEC)
#define CLIENT_CLOSE_USEC (2 * USEC_PER_SEC)

enum {
        CHUNK = 32 * 1024,
        REASON_MAX = 8 * 1024, /* why a command has not started */
};

typedef struct ExecSession ExecSession;

/* One of the command's output streams. */
typedef struct ExecSessionOutput {
        EpollSource source;
        ExecSession *session;
        unsigned char channel;
        bool is_watched;
        bool is_muted; /* the client does not read it */
} ExecSessionOutput;

struct ExecSession {
        const SessionSpec *spec;
        int epoll_fd;
        Channels *channels;
        EpollSource socket;
        uint32_t socket_events;
        EpollSource link; /* connection to the process that has the command */
        ExecSessionOutput output, error;

        EpollSource input; /* the command's end of its standard input */
        bool is_input_watched;
        Buffer pending; /* data from the client; n_taken bytes are written */
        size_t n_taken;
        bool is_input_over;
        struct winsize size; /* as received before the terminal existed */

        bool has_started; /* the command was requested or refused */
        bool is_starting;
        bool runs;
        bool has_ended;
        int status;
        bool is_abandoned;    /* nothing can be sent to the client */
        bool has_sent_status; /* the status is queued, and nothing is sent after it */
        EpollSource notice;   /* notices from the shim, if the session is attached */
        bool is_dropped;      /* likewise: the client did not read */
        uint64_t deadline;
};

/* ---- the client ---- */

static void watch_session_socket(ExecSession *s) {
        uint32_t events = EPOLLRDHUP;

        if (s->pending.length == 0 && channels_wants_read(s->channels))
                events |= EPOLLIN;
        if (channels_wants_write(s->channels))
                events |= EPOLLOUT;
        if (events != s->socket_events)
                (void) epoll_source_change(s->epoll_fd, &s->socket, events);
        s->socket_events = events;
}

/* Data has been copied since the command ended, so more output may follow. */
static void extend_session_deadline(ExecSession *s) {
        size_t queued = channels_queued(s->channels);
        uint64_t patience = DRAIN_USEC;

        if (!s->has_ended || s->is_abandoned)
                return;
        if (s->has_sent_status)
                patience = queued > 0 ? CLIENT_STALL_USEC : CLIENT_CLOSE_USEC;
        else if (queued >= CHANNELS_QUEUE_MAX)
                patience = CLIENT_STALL_USEC;
        s->deadline = now_awake_usec() + patience;
}

static void abandon_session(ExecSession *s) {
        if (s->is_abandoned)
                return;
        s->is_abandoned = true; /* the command ends with this process, and a container continues to
                                 * run */
        epoll_source_remove(s->epoll_fd, &s->socket); /* it would be reported continuously */
}

static void flush_session_channels(ExecSession *s) {
        size_t before = channels_queued(s->channels);

        if (channels_write(s->channels) < 0)
                abandon_session(s);
        if (channels_queued(s->channels) < before)
                extend_session_deadline(s);
        watch_session_socket(s);
}

static void send_on_channel(ExecSession *s, unsigned char channel, const void *data,
                            size_t length) {
        if (channels_send(s->channels, channel, data, length) < 0)
                abandon_session(s);
        flush_session_channels(s);
}

static char *format_session_error(const ExecSession *s, const char *reason) {
        if (!reason)
                return NULL;
        return text_format("error %s container: %s",
                           s->spec->attaches ? "attaching to" : "executing command in", reason);
}

/* 'reason': why it failed, or NULL. */
static void send_session_status(ExecSession *s, const char *reason) {
        cleanup_free char *error = format_session_error(s, reason);
        cleanup_free char *status = format_session_status(s->status, error);

        if (s->has_sent_status)
                return;
        s->has_sent_status = true;
        if (status)
                send_on_channel(s, CHANNEL_STATUS, status, strlen(status));
        channels_close(s->channels);
        extend_session_deadline(s);
        flush_session_channels(s);
}

/* ---- from the client to the command ---- */

static void close_session_input(ExecSession *s) {
        epoll_source_remove(s->epoll_fd, &s->input);
        s->input.fd = close_fd(s->input.fd);
        s->pending.length = s->n_taken = 0;
        channels_hold(s->channels, false);
}

static void watch_session_input(ExecSession *s, bool is_watched) {
        if (s->input.fd >= 0 && s->is_input_watched != is_watched)
                (void) epoll_source_change(s->epoll_fd, &s->input, is_watched ? EPOLLOUT : 0);
        s->is_input_watched = is_watched;
}

/* Writes as much as the command accepts. */
static void write_session_input(ExecSession *s) {
        while (s->n_taken < s->pending.length && s->input.fd >= 0) {
                ssize_t n = write(s->input.fd, s->pending.data + s->n_taken,
                                  s->pending.length - s->n_taken);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN) {
                        watch_session_input(s, true);
                        return;
                }
                if (n < 0) {
                        close_session_input(s);
                        return;
                }
                s->n_taken += (size_t) n;
        }
        watch_session_input(s, false);
        s->pending.length = s->n_taken = 0;
        channels_hold(s->channels, false);
        /* The input of a terminal ends with a control character, not by closing a descriptor. */
        if (s->is_input_over && !s->spec->has_terminal)
                close_session_input(s);
}

static void on_session_input_writable(EpollSource *source, uint32_t events) {
        ExecSession *s = container_of(source, ExecSession, input);

        if (events & EPOLLERR && !(events & EPOLLOUT))
                close_session_input(s);
        else
                write_session_input(s);
        watch_session_socket(s);
}

/* The data is kept until the command accepts it; only then is more read from the client. */
static void queue_session_input(ExecSession *s, const char *data, size_t length) {
        bool has_place = s->input.fd >= 0 || s->is_starting; /* or will exist */

        if (!s->spec->has_input || !has_place || s->is_input_over || length == 0)
                return;
        if (buffer_append(&s->pending, data, length, SIZE_MAX) < 0) {
                abandon_session(s);
                return;
        }
        channels_hold(s->channels, true);
        if (s->input.fd >= 0)
                write_session_input(s);
}

static void resize_session_terminal(ExecSession *s, const char *data, size_t length) {
        int fd = s->spec->attaches ? s->spec->streams.terminal_fd : s->output.source.fd;

        if (!parse_terminal_size(data, length, &s->size))
                return;
        if (s->spec->has_terminal && fd >= 0)
                (void) ioctl(fd, TIOCSWINSZ, &s->size);
}

static void start_session_command(ExecSession *s);

static void on_session_message(unsigned char channel, const char *data, size_t length,
                               void *userdata) {
        ExecSession *s = userdata;

        switch (channel) {
        case CHANNEL_INPUT:
                queue_session_input(s, data, length);
                break;
        case CHANNEL_RESIZE:
                resize_session_terminal(s, data, length);
                break;
        case CHANNEL_START:
                if (!s->has_started)
                        start_session_command(s);
                break;
        case CHANNEL_CLOSE:
                if (length == 1 && data[0] == CHANNEL_INPUT) {
                        s->is_input_over = true;
                        if (s->input.fd >= 0)
                                write_session_input(s);
                }
                break;
        default:
                break;
        }
}

static void watch_session_output(ExecSessionOutput *outlet, bool is_watched);

static void on_session_socket(EpollSource *source, uint32_t events) {
        ExecSession *s = container_of(source, ExecSession, socket);
        int r = 0;

        if (events & EPOLLIN)
                r = channels_read(s->channels);
        if (r < 0 || events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
                abandon_session(s);
        flush_session_channels(s);
        if (channels_queued(s->channels) < CHANNELS_QUEUE_MAX) {
                watch_session_output(&s->output, true);
                watch_session_output(&s->error, true);
        }
}

/* ---- from the command to the client ---- */

static void close_session_output(ExecSessionOutput *outlet) {
        epoll_source_remove(outlet->session->epoll_fd, &outlet->source);
        outlet->source.fd = close_fd(outlet->source.fd);
}

/* The source is not in the loop while its data cannot be sent, because its end would be reported
 * continuously. Until the command runs, the runtime writes here; its messages are also in its own
 * log. */
static void watch_session_output(ExecSessionOutput *outlet, bool is_watched) {
        ExecSession *s = outlet->session;

        is_watched = is_watched && (s->runs || s->spec->attaches);
        if (outlet->source.fd < 0 || outlet->is_watched == is_watched)
                return;
        if (is_watched && epoll_source_add(s->epoll_fd, &outlet->source, EPOLLIN) < 0)
                abandon_session(s);
        else if (!is_watched)
                epoll_source_remove(s->epoll_fd, &outlet->source);
        outlet->is_watched = is_watched;
}

static void on_session_output_readable(EpollSource *source, uint32_t events) {
        ExecSessionOutput *outlet = container_of(source, ExecSessionOutput, source);
        ExecSession *s = outlet->session;
        char chunk[CHUNK];
        ssize_t n = read(source->fd, chunk, sizeof(chunk));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) { /* EIO: no process holds the terminal */
                close_session_output(outlet);
                return;
        }
        if (s->spec->attaches && s->spec->has_terminal)
                attachment_report_read(&s->spec->streams, source->fd);
        if (!outlet->is_muted)
                send_on_channel(s, outlet->channel, chunk, (size_t) n);
        extend_session_deadline(s);
        if (channels_queued(s->channels) >= CHANNELS_QUEUE_MAX) {
                watch_session_output(&s->output, false);
                watch_session_output(&s->error, false);
        }
}

static void open_session_output(ExecSessionOutput *outlet, int fd) {
        outlet->source.fd = fd;
        watch_session_output(outlet, true);
}

/* ---- the command ---- */

static int open_session_input(ExecSession *s, int fd) {
        int r;

        s->input.fd = fd;
        r = epoll_source_add(s->epoll_fd, &s->input, 0);
        if (r >= 0)
                write_session_input(s);
        watch_session_socket(s);
        return r;
}

static void on_command_terminal(ExecSession *s, int master_fd) {
        int fd;

        open_session_output(&s->output, master_fd);
        if (s->size.ws_col > 0)
                (void) ioctl(master_fd, TIOCSWINSZ, &s->size);
        fd = fcntl(master_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0 || open_session_input(s, fd) < 0)
                abandon_session(s);
}

/* The ends of the command's pipes, if it has no terminal. */
static int open_session_streams(ExecSession *s, const SessionPipes *pipes) {
        int input_fd = pipes->input_fd;

        s->output.is_muted = !s->spec->has_output;
        s->error.is_muted = !s->spec->has_error;
        if (pipes->output_fd >= 0)
                open_session_output(&s->output, pipes->output_fd);
        if (pipes->error_fd >= 0)
                open_session_output(&s->error, pipes->error_fd);
        if (s->spec->has_input && input_fd >= 0)
                return open_session_input(s, input_fd);
        close_fd(input_fd);
        return 0;
}

static void on_command_runs(ExecSession *s) {
        s->is_starting = false;
        s->runs = true;
        watch_session_output(&s->output, true);
        watch_session_output(&s->error, true);
}

/* 'reason': why the command has not started, or NULL. */
static void on_command_ended(ExecSession *s, int status, const char *reason) {
        s->is_starting = false;
        s->has_ended = true;
        s->status = status;
        if (reason)
                send_session_status(s, reason);
        else
                extend_session_deadline(s);
}

static void on_session_link(EpollSource *source, uint32_t events) {
        ExecSession *s = container_of(source, ExecSession, link);
        cleanup_copier_message CopierMessage message = COPIER_MESSAGE(COPIER_ANSWER, 0);
        char reason[REASON_MAX + 1];
        ssize_t n = copier_channel_receive(source->fd, /* waits= */ false, &message, reason,
                                           REASON_MAX);

        if (n == -EAGAIN)
                return;
        if (n < 0) {
                abandon_session(s);
                return;
        }
        reason[n] = '\0';
        if (message.type == SESSION_TERMINAL && message.fds[COPIER_FD_TERMINAL] >= 0)
                on_command_terminal(s, TAKE_FD(message.fds[COPIER_FD_TERMINAL]));
        else if (message.type == SESSION_RUNS)
                on_command_runs(s);
        else if (message.type == SESSION_ENDED)
                on_command_ended(s, message.result, n > 0 ? reason : NULL);
}

static int request_session_command(ExecSession *s) {
        s->is_starting = true;
        return copier_channel_write(s->link.fd, &COPIER_MESSAGE(SESSION_START, 0), NULL, 0);
}

/* ---- attached to the container itself ---- */

static void on_attachment_notice(EpollSource *source, uint32_t events) {
        ExecSession *s = container_of(source, ExecSession, notice);
        uint64_t notice = 0;

        if (read(source->fd, &notice, sizeof(notice)) != sizeof(notice))
                return;
        s->is_dropped = notice >= ATTACHMENT_DROPPED;
        s->has_ended = true;
        extend_session_deadline(s);
}

static int start_attached_session(ExecSession *s) {
        const AttachmentStreams *streams = &s->spec->streams;
        int input_fd = streams->input_fd, r;

        s->notice = (EpollSource){ streams->notice_fd, on_attachment_notice };
        r = epoll_source_add(s->epoll_fd, &s->notice, EPOLLIN);
        open_session_output(&s->output, streams->output_fd);
        open_session_output(&s->error, streams->error_fd);
        if (r < 0 || input_fd < 0)
                return r;
        if (s->spec->has_terminal) /* which stays open for window sizes */
                input_fd = fcntl(input_fd, F_DUPFD_CLOEXEC, 3);
        return input_fd < 0 ? -errno : open_session_input(s, input_fd);
}

static int open_exec_session(ExecSession *s) {
        int fd = s->spec->socket_fd, r;

        r = fd_set_nonblocking(fd);
        if (r < 0)
                return r;
        s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (s->epoll_fd < 0)
                return -errno;
        r = channels_new(fd, /* is_client= */ false, on_session_message, s, &s->channels);
        if (r < 0)
                return r;
        s->socket = (EpollSource){ fd, on_session_socket };
        s->socket_events = EPOLLIN | EPOLLRDHUP;
        r = epoll_source_add(s->epoll_fd, &s->socket, s->socket_events);
        if (r >= 0 && s->link.fd >= 0)
                r = epoll_source_add(s->epoll_fd, &s->link, EPOLLIN);
        return r;
}

static void start_session_command(ExecSession *s) {
        int r;

        s->has_started = true;
        if (s->spec->refusal) {
                s->has_ended = true;
                send_session_status(s, s->spec->refusal);
                return;
        }
        r = s->spec->attaches ? start_attached_session(s) : request_session_command(s);
        if (r < 0) {
                s->has_ended = true;
                send_session_status(s, strerror(-r));
        }
}

/* If the CPU was busy, the time limit may be reached before data that has arrived is read. */
static bool has_unread_output(const ExecSession *s) {
        struct pollfd fds[] = {
                { .fd = s->output.is_watched ? s->output.source.fd : -1, .events = POLLIN },
                { .fd = s->error.is_watched ? s->error.source.fd : -1, .events = POLLIN }
        };

        return poll(fds, N_ELEMENTS(fds), 0) > 0;
}

static bool is_session_over(const ExecSession *s) {
        if (now_awake_usec() >= s->deadline && s->has_sent_status)
                return true;
        return s->is_abandoned || (s->has_sent_status && channels_is_over(s->channels));
}

static int run_session_loop(ExecSession *s) {
        int r = 0;

        while (!is_session_over(s)) {
                bool is_silent = s->output.source.fd < 0 && s->error.source.fd < 0;

                if (s->has_ended && !s->has_sent_status &&
                    (is_silent || (now_awake_usec() >= s->deadline && !has_unread_output(s))))
                        send_session_status(s, s->is_dropped ? "the client did not read the output "
                                                               "fast enough"
                                                             : NULL);
                else
                        r = epoll_loop_run_once(s->epoll_fd, s->deadline);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void exec_session_done(ExecSession *s) {
        channels_free(s->channels);
        buffer_done(&s->pending);
}

static int close_unneeded_descriptors(const SessionSpec *spec, const SessionPipes *pipes) {
        const AttachmentStreams *streams = &spec->streams;
        int kept[] = { spec->socket_fd,   pipes->link_fd,      pipes->input_fd,
                       pipes->output_fd,  pipes->error_fd,     streams->output_fd,
                       streams->error_fd, streams->notice_fd,  streams->resume_fd,
                       streams->input_fd, streams->terminal_fd };

        return confine_descriptors(kept, N_ELEMENTS(kept));
}

int session_copy(const SessionSpec *spec, const SessionPipes *pipes, pid_t parent) {
        cleanup_with(exec_session_done) ExecSession s = {
                .spec = spec,
                .link = { pipes->link_fd, on_session_link },
                .notice = EPOLL_SOURCE_NULL,
                .output = { { -EBADF, on_session_output_readable }, &s, CHANNEL_OUTPUT, false },
                .error = { { -EBADF, on_session_output_readable }, &s, CHANNEL_ERROR, false },
                .input = { -EBADF, on_session_input_writable },
                .deadline = USEC_INFINITY,
        };
        int r = close_unneeded_descriptors(spec, pipes);

        if (r >= 0)
                r = open_exec_session(&s); /* this loads a library */
        if (r >= 0)
                r = confine_streams(parent);
        if (r >= 0)
                r = open_session_streams(&s, pipes);
        if (r < 0)
                return r;
        if (!spec->is_held)
                start_session_command(&s);
        return run_session_loop(&s);
}

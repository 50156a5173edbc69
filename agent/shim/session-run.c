/* SPDX-License-Identifier: Apache-2.0 */
/* The command's streams are pipes, or a terminal that the runtime creates; the client's streams are
 * channels of the WebSocket. Nothing is read that cannot be passed on: a client that does not read
 * stops the command, a command that does not read stops the client, and neither uses memory.
 *
 * A session that is attached to a container itself lacks a command: its streams are those of the
 * container, which the shim copies (attachments.h), and it ends with the container.
 *
 * The runtime starts the command and leaves it to us, as we are its subreaper. So the exit status
 * comes from the kernel, and the command can be killed when the client disconnects. */

#include "agent/shim/session-run.h"

#include "agent/shim/epoll-loop.h"
#include "agent/shim/session-runtime.h"
#include "agent/shim/session-status.h"
#include "agent/shim/terminal.h"
#include "common/channels.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* How long to wait for output of the command's children after its end, for a client that does not
 * read, and for one that does not close the connection. */
#define DRAIN_USEC        (500 * USEC_PER_MSEC)
#define CLIENT_STALL_USEC (10 * USEC_PER_SEC)
#define CLIENT_CLOSE_USEC (2 * USEC_PER_SEC)

enum {
        CHUNK = 32 * 1024,
};

typedef struct ExecSession ExecSession;

/* One of the command's streams that we read. */
typedef struct ExecSessionOutput {
        EpollSource source;
        ExecSession *session;
        unsigned char channel;
        bool is_watched;
        bool is_muted; /* the client does not want it */
} ExecSessionOutput;

struct ExecSession {
        const SessionSpec *spec;
        int epoll_fd;
        Channels *channels;
        EpollSource socket;
        uint32_t socket_events;
        EpollSource signals;
        Terminal *terminal;
        ExecSessionOutput output, error;

        EpollSource input; /* the command's end of its standard input */
        bool is_input_watched;
        char *pending; /* received from the client, and not written yet */
        size_t n_pending, n_taken;
        bool is_input_over;
        struct winsize size; /* as received before the terminal existed */

        bool has_started;  /* the command was requested of the runtime, or refused */
        pid_t runtime_pid; /* 0: it has ended */
        pid_t pid;         /* of the command, once the runtime has ended */
        bool has_ended;
        int status;
        bool is_abandoned;    /* nothing can be sent to the client */
        bool has_sent_status; /* the status is queued, and nothing is sent after it */
        EpollSource notice;   /* of the shim, where the session is attached */
        bool is_dropped;      /* likewise: the client did not read */
        uint64_t deadline;
};

/* ---- the client ---- */

static void watch_session_socket(ExecSession *s) {
        uint32_t events = EPOLLRDHUP;

        if (s->n_pending == 0 && channels_wants_read(s->channels))
                events |= EPOLLIN;
        if (channels_wants_write(s->channels))
                events |= EPOLLOUT;
        if (events != s->socket_events)
                (void) epoll_source_change(s->epoll_fd, &s->socket, events);
        s->socket_events = events;
}

/* A stream has moved since the command's end: more output may follow. */
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

/* It leads a session of its own; processes that it started are killed with it. */
static void kill_command_group(pid_t pid) {
        (void) kill(-pid, SIGKILL);
        (void) kill(pid, SIGKILL);
}

static void kill_session_command(const ExecSession *s) {
        if (s->pid > 0 && !s->has_ended)
                kill_command_group(s->pid);
}

static void abandon_session(ExecSession *s) {
        if (s->is_abandoned)
                return;
        s->is_abandoned = true;
        s->deadline = now_awake_usec() + CLIENT_STALL_USEC;
        epoll_source_remove(s->epoll_fd, &s->socket); /* it would be reported again and again */
        if (s->spec->attaches || !s->has_started)
                s->has_ended = true; /* the container continues to run */
        kill_session_command(s);
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
        char *error;

        if (!reason)
                return NULL;
        return asprintf(&error, "error %s container: %s",
                        s->spec->attaches ? "attaching to" : "executing command in", reason) < 0
                       ? NULL
                       : error;
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
        s->n_pending = s->n_taken = 0;
        channels_hold(s->channels, false);
}

static void watch_session_input(ExecSession *s, bool is_watched) {
        if (s->input.fd >= 0 && s->is_input_watched != is_watched)
                (void) epoll_source_change(s->epoll_fd, &s->input, is_watched ? EPOLLOUT : 0);
        s->is_input_watched = is_watched;
}

/* Writes as much as the command takes. */
static void write_session_input(ExecSession *s) {
        while (s->n_taken < s->n_pending && s->input.fd >= 0) {
                ssize_t n = write(s->input.fd, s->pending + s->n_taken, s->n_pending - s->n_taken);

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
        s->n_pending = s->n_taken = 0;
        channels_hold(s->channels, false);
        /* A terminal's input is ended by a character, not by a closed descriptor. */
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

/* Kept until the command takes it; only then is more read from the client. */
static void queue_session_input(ExecSession *s, const char *data, size_t length) {
        bool has_place = s->input.fd >= 0 || s->runtime_pid > 0; /* or will have */
        char *larger;

        if (!s->spec->has_input || !has_place || s->is_input_over || length == 0)
                return;
        larger = realloc(s->pending, s->n_pending + length);
        if (!larger) {
                abandon_session(s);
                return;
        }
        s->pending = larger;
        memcpy(s->pending + s->n_pending, data, length);
        s->n_pending += length;
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

/* Not in the loop while its bytes cannot be sent: its end would be reported again and again. Until
 * the command runs, the runtime writes here, and its messages are in its own log as well. */
static void watch_session_output(ExecSessionOutput *outlet, bool is_watched) {
        ExecSession *s = outlet->session;

        is_watched = is_watched && (s->pid > 0 || s->spec->attaches);
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
        if (n <= 0) { /* EIO: a terminal that no process holds */
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

/* A runtime that did not end well, or not in time, may have started the command before. */
static void kill_unstarted_command(const ExecSession *s) {
        pid_t pid;

        if (session_read_pid(s->spec, &pid) >= 0 && waitpid(pid, NULL, WNOHANG) == 0) /* ours */
                kill_command_group(pid);
}

static void on_session_runtime_exit(ExecSession *s, int status) {
        cleanup_free char *message = NULL;
        bool has_failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;

        s->runtime_pid = 0;
        if (s->terminal)
                terminal_receive_master(s->terminal);
        if (!has_failed && session_read_pid(s->spec, &s->pid) >= 0) {
                watch_session_output(&s->output, true);
                watch_session_output(&s->error, true);
                if (s->is_abandoned)
                        kill_session_command(s);
                return;
        }
        kill_unstarted_command(s);
        message = runtime_log_last_error(s->spec->directory);
        if (!message)
                message = runtime_describe_end(s->spec->runtime.program, "exec", status);
        s->has_ended = true;
        send_session_status(s, strna(message));
}

static void reap_session_children(ExecSession *s) {
        int status;

        /* The command may end before the runtime, and only the runtime reports its PID. */
        if (s->runtime_pid > 0 && waitpid(s->runtime_pid, &status, WNOHANG) == s->runtime_pid)
                on_session_runtime_exit(s, status);
        if (s->runtime_pid > 0)
                return;
        for (;;) {
                pid_t pid = waitpid(-1, &status, WNOHANG);

                if (pid <= 0)
                        return;
                if (pid != s->pid || s->has_ended)
                        continue;
                s->has_ended = true;
                s->status = status;
                extend_session_deadline(s);
        }
}

static void on_session_sigchld(EpollSource *source, uint32_t events) {
        struct signalfd_siginfo info;

        if (read(source->fd, &info, sizeof(info)) == sizeof(info))
                reap_session_children(container_of(source, ExecSession, signals));
}

static int open_session_input(ExecSession *s, int fd) {
        int r;

        s->input.fd = fd;
        r = epoll_source_add(s->epoll_fd, &s->input, 0);
        if (r >= 0)
                write_session_input(s);
        watch_session_socket(s);
        return r;
}

static void on_session_terminal(int master_fd, void *userdata) {
        ExecSession *s = userdata;
        int fd;

        open_session_output(&s->output, master_fd);
        if (s->size.ws_col > 0)
                (void) ioctl(master_fd, TIOCSWINSZ, &s->size);
        fd = fcntl(master_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0 || open_session_input(s, fd) < 0)
                abandon_session(s);
}

/* The session's ends of the command's streams, and in 'ret_fds' the command's own. Streams that are
 * not requested are pipes as well: /dev/null is the node's, and root in the container could change
 * its mode through a descriptor. */
static int open_session_pipes(ExecSession *s, int ret_fds[3]) {
        ExecSessionOutput *outlets[] = { NULL, &s->output, &s->error };
        const bool wanted[] = { s->spec->has_input, s->spec->has_output, s->spec->has_error };
        int r = 0;

        for (int i = 0; i < 3 && r >= 0; i++) {
                const PipeEnd own = i == 0 ? PIPE_WRITE_END : PIPE_READ_END;
                int pipes[2];

                r = pipe_open(own, pipes);
                if (r < 0)
                        return r;
                ret_fds[i] = pipes[!own];
                if (i > 0) {
                        outlets[i]->is_muted = !wanted[i];
                        open_session_output(outlets[i], pipes[own]);
                } else if (wanted[i])
                        r = open_session_input(s, pipes[own]);
                else
                        close_fd(pipes[own]);
        }
        return r;
}

static int start_session_with_pipes(ExecSession *s) {
        int fds[3] = { -EBADF, -EBADF, -EBADF };
        int r = open_session_pipes(s, fds);

        if (r >= 0)
                r = session_start_runtime(s->spec, NULL, fds, &s->runtime_pid);
        for (int i = 0; i < 3; i++)
                close_fd(fds[i]);
        return r;
}

static int start_session_with_terminal(ExecSession *s) {
        const int fds[3] = { -EBADF, -EBADF, -EBADF };
        cleanup_free char *path = path_join(s->spec->directory, "tty");
        int r;

        if (!path)
                return -ENOMEM;
        r = terminal_new(s->epoll_fd, path, on_session_terminal, s, &s->terminal, NULL);
        return r < 0 ? r : session_start_runtime(s->spec, path, fds, &s->runtime_pid);
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
        if (s->spec->has_terminal) /* which stays open for its size */
                input_fd = fcntl(input_fd, F_DUPFD_CLOEXEC, 3);
        return input_fd < 0 ? -errno : open_session_input(s, input_fd);
}

static int watch_session_sigchld(ExecSession *s) {
        sigset_t signals;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGCHLD);
        if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return -errno;
        (void) signal(SIGPIPE, SIG_IGN);
        s->signals = (EpollSource){ signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK),
                                    on_session_sigchld };
        if (s->signals.fd < 0)
                return -errno;
        return epoll_source_add(s->epoll_fd, &s->signals, EPOLLIN);
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
        return r < 0 ? r : watch_session_sigchld(s);
}

static int start_accepted_session(ExecSession *s) {
        if (s->spec->attaches)
                return start_attached_session(s);
        if (mkdir(s->spec->directory, 0700) < 0 && errno != EEXIST)
                return -errno;
        return s->spec->has_terminal ? start_session_with_terminal(s) : start_session_with_pipes(s);
}

static void start_session_command(ExecSession *s) {
        int r;

        s->has_started = true;
        if (s->spec->refusal) {
                s->has_ended = true;
                send_session_status(s, s->spec->refusal);
                return;
        }
        r = start_accepted_session(s);
        if (r < 0) {
                s->has_ended = true;
                send_session_status(s, strerror(-r));
        }
}

/* Where the processor was busy elsewhere, the time may pass before what has come is read. */
static bool has_unread_output(const ExecSession *s) {
        struct pollfd fds[] = {
                { .fd = s->output.is_watched ? s->output.source.fd : -1, .events = POLLIN },
                { .fd = s->error.is_watched ? s->error.source.fd : -1, .events = POLLIN }
        };

        return poll(fds, N_ELEMENTS(fds), 0) > 0;
}

static bool is_session_over(const ExecSession *s) {
        if (now_awake_usec() >= s->deadline && (s->is_abandoned || s->has_sent_status))
                return true;
        return s->is_abandoned ? s->has_ended : s->has_sent_status && channels_is_over(s->channels);
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

static void end_session_runtime(ExecSession *s) {
        if (s->runtime_pid <= 0)
                return;
        (void) kill(s->runtime_pid, SIGKILL);
        while (waitpid(s->runtime_pid, NULL, 0) < 0 && errno == EINTR)
                ;
        kill_unstarted_command(s);
}

static void exec_session_done(ExecSession *s) {
        kill_session_command(s);
        end_session_runtime(s);
        terminal_free(s->terminal);
        channels_free(s->channels);
        free(s->pending);
        if (s->spec->directory)
                (void) remove_tree_at(AT_FDCWD, s->spec->directory);
}

int session_run(const SessionSpec *spec) {
        cleanup_with(exec_session_done) ExecSession s = {
                .spec = spec,
                .signals = EPOLL_SOURCE_NULL,
                .notice = EPOLL_SOURCE_NULL,
                .output = { { -EBADF, on_session_output_readable }, &s, CHANNEL_OUTPUT, false },
                .error = { { -EBADF, on_session_output_readable }, &s, CHANNEL_ERROR, false },
                .input = { -EBADF, on_session_input_writable },
                .deadline = USEC_INFINITY,
        };
        int r = open_exec_session(&s);

        if (r < 0)
                return r;
        if (!spec->is_held)
                start_session_command(&s);
        return run_session_loop(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/terminal-session.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/upgrade.h"
#include "agent/cli/words.h"
#include "common/channels.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/url-escape.h"
#include "common/utf8.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

enum {
        INPUT_CHUNK = 32 * 1024,
        INPUT_QUEUE_MAX = 256 * 1024,
        ERROR_LINE_MAX = 4096, /* a longer line is broken */
};

typedef struct ExecClientSession {
        const SessionStreams *streams;
        Channels *channels;
        int socket_fd;
        int signal_fd; /* SIGWINCH and termination signals; -EBADF without a terminal */
        int error;     /* the error of writing output */
        bool is_input_over;
        char error_line[ERROR_LINE_MAX + 1]; /* untrusted: the part of the line that has arrived */
        size_t error_line_length;
        char *status; /* the final result from the agent */
        size_t status_length;
} ExecClientSession;

static void exec_client_session_done(ExecClientSession *s) {
        channels_free(s->channels);
        close_fd(s->socket_fd);
        close_fd(s->signal_fd);
        free(s->status);
}

static int make_session_path(const json_t *pod, const char *container, char *const *argv,
                             const SessionStreams *streams, char **ret) {
        cleanup_free char *escaped_container = url_escape(container);
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        fprintf(out, "/%s/%s/%s/%s?", argv ? "exec" : "attach",
                strna(json_text(pod, "metadata", "namespace")),
                strna(json_text(pod, "metadata", "name")), strna(escaped_container));
        for (; argv && *argv; argv++) {
                cleanup_free char *word = url_escape(*argv);

                fprintf(out, "command=%s&", strna(word));
        }
        fprintf(out, "input=%d&output=%d&error=%d&tty=%d", streams->input_fd >= 0,
                streams->output_fd >= 0, streams->error_fd >= 0 && !streams->has_terminal,
                streams->has_terminal);
        *ret = memstream_finish(out, &text);
        return *ret ? 0 : -ENOMEM;
}

/* ---- output ---- */

static void finish_error_line(ExecClientSession *s) {
        s->error_line[s->error_line_length] = '\0';
        utf8_sanitize(s->error_line);
        s->error_line[s->error_line_length] = '\n';
        if (s->error >= 0)
                s->error = write_all(s->streams->error_fd, s->error_line, s->error_line_length + 1);
        s->error_line_length = 0;
}

/* The end of a character may be in the next message, so a whole line is collected first. */
static void collect_error_lines(ExecClientSession *s, const char *data, size_t length) {
        for (size_t i = 0; i < length; i++) {
                if (data[i] == '\n' || s->error_line_length == ERROR_LINE_MAX)
                        finish_error_line(s);
                if (data[i] == '\n')
                        continue;
                s->error_line[s->error_line_length] = data[i];
                if (data[i] == '\0')
                        s->error_line[s->error_line_length] = '?';
                s->error_line_length++;
        }
}

static void on_exec_channel_message(unsigned char channel, const char *data, size_t length,
                                    void *userdata) {
        ExecClientSession *s = userdata;
        int fd = channel == CHANNEL_OUTPUT  ? s->streams->output_fd
                 : channel == CHANNEL_ERROR ? s->streams->error_fd
                                            : -EBADF;

        if (channel == CHANNEL_STATUS && !s->status) {
                s->status = strndup(data, length);
                return;
        }
        if (channel == CHANNEL_ERROR && fd >= 0 && s->streams->is_error_untrusted) {
                collect_error_lines(s, data, length);
                return;
        }
        /* Writing blocks, so a slow reader of the output delays the command, and nothing is
         * buffered. */
        if (fd >= 0 && length > 0 && s->error >= 0)
                s->error = write_all(fd, data, length);
}

static int exit_code_of(const json_t *status, int *ret, Error *reterr) {
        size_t i;
        json_t *cause;

        if (streq_ptr(json_text(status, "status"), "Success")) {
                *ret = 0;
                return 0;
        }
        json_array_foreach(json_at(status, "details", "causes"), i, cause)
                if (streq_ptr(json_text(cause, "reason"), "ExitCode")) {
                        *ret = (int) strtol(strna(json_text(cause, "message")), NULL, 10);
                        return 0;
                }
        return error_setf(reterr, EREMOTEIO, "%s", strna(json_text(status, "message")));
}

/* ---- input ---- */

static int send_terminal_size(ExecClientSession *s) {
        struct winsize size;
        char text[64];

        if (!s->streams->has_terminal || ioctl(s->streams->output_fd, TIOCGWINSZ, &size) < 0)
                return 0;
        (void) snprintf(text, sizeof(text), "{\"Width\":%u,\"Height\":%u}", size.ws_col,
                        size.ws_row);
        return channels_send(s->channels, CHANNEL_RESIZE, text, strlen(text));
}

/* Restores the terminal before the process ends by a signal. */
static int on_exec_client_signal(ExecClientSession *s) {
        struct signalfd_siginfo info;

        if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
                return 0;
        return info.ssi_signo == SIGWINCH ? send_terminal_size(s) : -EINTR;
}

static int on_exec_client_input(ExecClientSession *s) {
        static const char input = CHANNEL_INPUT;
        char chunk[INPUT_CHUNK];
        ssize_t n = read(s->streams->input_fd, chunk, sizeof(chunk));

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return 0;
        if (n > 0)
                return channels_send(s->channels, CHANNEL_INPUT, chunk, (size_t) n);
        s->is_input_over = true;
        return channels_send(s->channels, CHANNEL_CLOSE, &input, 1);
}

static bool wants_input(const ExecClientSession *s) {
        return s->streams->input_fd >= 0 && !s->is_input_over && !s->status &&
               channels_queued(s->channels) < INPUT_QUEUE_MAX;
}

/* 0, or -errno when the session cannot continue. */
static int poll_exec_client(ExecClientSession *s) {
        struct pollfd fds[] = {
                { .fd = s->socket_fd, .events = channels_wants_read(s->channels) ? POLLIN : 0 },
                { .fd = wants_input(s) ? s->streams->input_fd : -1, .events = POLLIN },
                { .fd = s->signal_fd, .events = POLLIN },
        };
        int r = 0;

        if (channels_wants_write(s->channels))
                fds[0].events |= POLLOUT;
        if (poll(fds, N_ELEMENTS(fds), -1) < 0)
                return errno == EINTR ? 0 : -errno;
        if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
                r = channels_read(s->channels);
        if (r < 0)
                return r;
        if (fds[1].revents)
                r = on_exec_client_input(s);
        if (r < 0)
                return r;
        if (fds[2].revents)
                r = on_exec_client_signal(s);
        if (r < 0)
                return r;
        /* A write fails if the shim has exited. Data that it sent before can still be read. */
        if (channels_write(s->channels) < 0)
                r = channels_read(s->channels);
        return r < 0 ? r : s->error;
}

static int run_exec_client_loop(ExecClientSession *s, int *ret_exit_code, Error *reterr) {
        cleanup_json json_t *status = NULL;
        int r = send_terminal_size(s);

        while (r >= 0 && !channels_is_over(s->channels))
                r = poll_exec_client(s);
        if (s->error_line_length > 0)
                finish_error_line(s);
        if (s->status)
                status = json_loads(s->status, 0, NULL);
        if (status)
                return exit_code_of(status, ret_exit_code, reterr);
        if (s->error < 0)
                return error_setf(reterr, -s->error, "cannot write: %s", strerror(-s->error));
        return error_setf(reterr, EIO, "the connection of the session was closed");
}

/* ---- the local terminal ---- */

typedef struct RawTerminal {
        bool is_set;
        int fd;
        struct termios before;
} RawTerminal;

/* Raw mode: characters, including Ctrl-C, go to the command as they are typed; the command's
 * terminal echoes. */
static void raw_terminal_enable(RawTerminal *raw, const SessionStreams *streams) {
        struct termios new;

        if (!streams->has_terminal || streams->input_fd < 0 ||
            tcgetattr(streams->input_fd, &raw->before) < 0)
                return;
        new = raw->before;
        cfmakeraw(&new);
        raw->fd = streams->input_fd;
        raw->is_set = tcsetattr(raw->fd, TCSADRAIN, &new) >= 0;
}

static void raw_terminal_restore(RawTerminal *raw) {
        if (raw->is_set)
                (void) tcsetattr(raw->fd, TCSADRAIN, &raw->before);
}

static int watch_exec_client_signals(ExecClientSession *s) {
        static const int watched[] = { SIGWINCH, SIGTERM, SIGHUP, SIGINT };
        sigset_t signals;

        if (!s->streams->has_terminal)
                return 0;
        (void) sigemptyset(&signals);
        for (size_t i = 0; i < N_ELEMENTS(watched); i++)
                (void) sigaddset(&signals, watched[i]);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        return s->signal_fd < 0 ? -errno : 0;
}

/* 'argv' NULL: the container itself. */
static int run_client_session(const char *socket, const json_t *pod, const char *container,
                              char *const *argv, const SessionStreams *streams, int *ret_exit_code,
                              Error *reterr) {
        cleanup_with(exec_client_session_done) ExecClientSession s = { .streams = streams,
                                                                       .socket_fd = -EBADF,
                                                                       .signal_fd = -EBADF };
        cleanup_free char *path = NULL;
        cleanup_with(raw_terminal_restore) RawTerminal raw = { 0 };
        int r = make_session_path(pod, container, argv, streams, &path);

        if (r < 0)
                return r;
        r = upgrade_connect(socket, path, &s.socket_fd, reterr);
        if (r < 0)
                return r;
        r = channels_new(s.socket_fd, /* is_client= */ true, on_exec_channel_message, &s,
                         &s.channels);
        if (r < 0)
                return r;
        r = watch_exec_client_signals(&s);
        if (r < 0)
                return r;
        raw_terminal_enable(&raw, streams);
        return run_exec_client_loop(&s, ret_exit_code, reterr);
}

int session_exec(const char *socket, const json_t *pod, const char *container, char *const *argv,
                 const SessionStreams *streams, int *ret_exit_code, Error *reterr) {
        return run_client_session(socket, pod, container, argv, streams, ret_exit_code, reterr);
}

int session_attach(const char *socket, const json_t *pod, const char *container,
                   const SessionStreams *streams, Error *reterr) {
        int code;

        return run_client_session(socket, pod, container, /* argv= */ NULL, streams, &code, reterr);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime starts the command and exits; this process is the subreaper of the command. So the
 * exit status comes from the kernel, and the command can be killed when the client disconnects.
 *
 * The copier sends one message, the request to start the command, and closes its end. */

#include "agent/shim/session-command.h"

#include "agent/shim/copier-channel.h"
#include "agent/shim/epoll-loop.h"
#include "agent/shim/process-fork.h"
#include "agent/shim/session-run.h"
#include "agent/shim/terminal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* How long a killed command may take to end. */
#define KILL_USEC (10 * USEC_PER_SEC)

typedef struct SessionCommand {
        const SessionSpec *spec;
        int epoll_fd;
        EpollSource link; /* connection to the copier; -EBADF: it has ended */
        EpollSource signals;
        Terminal *terminal;
        int fds[3]; /* the command's */
        bool has_started;
        pid_t runtime_pid; /* 0: it has ended */
        pid_t pid;         /* PID of the command, once the runtime has ended */
        bool has_ended;
        uint64_t deadline;
} SessionCommand;

/* The command leads a separate session; processes that it started are killed with it. */
static void kill_command_group(pid_t pid) {
        (void) kill(-pid, SIGKILL);
        (void) kill(pid, SIGKILL);
}

static void kill_session_command(const SessionCommand *c) {
        if (c->pid > 0 && !c->has_ended)
                kill_command_group(c->pid);
}

/* A runtime may have started the command before it failed or timed out. */
static void kill_unstarted_command(const SessionCommand *c) {
        pid_t pid;

        if (session_read_pid(c->spec, &pid) >= 0 && waitpid(pid, NULL, WNOHANG) == 0) /* ours */
                kill_command_group(pid);
}

static void tell_copier(const SessionCommand *c, const CopierMessage *message, const char *text) {
        if (c->link.fd >= 0)
                (void) copier_channel_send(c->link.fd, message, strna(text), strlen(strna(text)));
}

/* 'reason': why the session failed, or NULL. */
static void end_command(SessionCommand *c, int status, const char *reason) {
        CopierMessage message = COPIER_MESSAGE(SESSION_ENDED, 0);

        c->has_ended = true;
        message.result = status;
        tell_copier(c, &message, reason);
}

/* ---- the runtime and the command ---- */

static void close_command_ends(SessionCommand *c) {
        for (int i = 0; i < 3; i++)
                c->fds[i] = close_fd(c->fds[i]);
}

static void on_session_terminal(int master_fd, void *userdata) {
        SessionCommand *c = userdata;
        CopierMessage message = COPIER_MESSAGE(SESSION_TERMINAL, 0);

        message.fds[COPIER_FD_TERMINAL] = master_fd;
        tell_copier(c, &message, NULL);
        close_fd(master_fd);
}

static int start_command(SessionCommand *c) {
        cleanup_free char *path = path_join(c->spec->directory, "tty");
        int r = 0;

        if (!path)
                return -ENOMEM;
        if (mkdir(c->spec->directory, 0700) < 0 && errno != EEXIST)
                return -errno;
        if (c->spec->has_terminal)
                r = terminal_new(c->epoll_fd, path, on_session_terminal, c, &c->terminal, NULL);
        return r < 0 ? r
                     : session_start_runtime(c->spec, c->spec->has_terminal ? path : NULL, c->fds,
                                             &c->runtime_pid);
}

static void on_session_runtime_exit(SessionCommand *c, int status) {
        cleanup_free char *message = NULL;
        bool has_failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;

        c->runtime_pid = 0;
        if (c->terminal)
                terminal_receive_master(c->terminal);
        if (!has_failed && session_read_pid(c->spec, &c->pid) >= 0) {
                tell_copier(c, &COPIER_MESSAGE(SESSION_RUNS, 0), NULL);
                if (c->link.fd < 0)
                        kill_session_command(c);
                return;
        }
        kill_unstarted_command(c);
        message = runtime_log_last_error(c->spec->directory);
        if (!message)
                message = runtime_describe_end(c->spec->runtime.program, "exec", status);
        end_command(c, 0, message ? message : "out of memory");
}

static void reap_session_children(SessionCommand *c) {
        int status;

        /* The command may end before the runtime, and only the runtime reports its PID. */
        if (c->runtime_pid > 0 && waitpid(c->runtime_pid, &status, WNOHANG) == c->runtime_pid)
                on_session_runtime_exit(c, status);
        if (c->runtime_pid > 0)
                return;
        for (;;) {
                pid_t pid = waitpid(-1, &status, WNOHANG);

                if (pid <= 0)
                        return;
                if (pid == c->pid && !c->has_ended)
                        end_command(c, status, NULL);
        }
}

static void on_session_sigchld(EpollSource *source, uint32_t events) {
        struct signalfd_siginfo info;

        if (read(source->fd, &info, sizeof(info)) == sizeof(info))
                reap_session_children(container_of(source, SessionCommand, signals));
}

/* ---- the copier ---- */

static void on_copier_gone(SessionCommand *c) {
        epoll_source_remove(c->epoll_fd, &c->link);
        c->link.fd = close_fd(c->link.fd);
        c->deadline = now_awake_usec() + KILL_USEC;
        if (!c->has_started)
                c->has_ended = true;
        kill_session_command(c);
}

static void on_session_copier_message(EpollSource *source, uint32_t events) {
        SessionCommand *c = container_of(source, SessionCommand, link);
        cleanup_copier_message CopierMessage message = COPIER_MESSAGE(COPIER_ANSWER, 0);
        ssize_t n = copier_channel_receive(source->fd, /* waits= */ false, &message, NULL, 0);
        int r;

        if (n == -EAGAIN)
                return;
        if (n < 0) {
                on_copier_gone(c);
                return;
        }
        if (message.type != SESSION_START || c->has_started)
                return;
        c->has_started = true;
        r = start_command(c);
        close_command_ends(c);
        if (r < 0)
                end_command(c, 0, strerror(-r));
}

/* The copier's ends of the command's streams, with the command's ends in c->fds. Streams that are
 * not requested are pipes as well: /dev/null is the node's, and root in the container could change
 * its mode through a descriptor. */
static int open_command_pipes(SessionCommand *c, SessionPipes *pipes) {
        int *own[] = { &pipes->input_fd, &pipes->output_fd, &pipes->error_fd };

        for (int i = 0; i < 3 && !c->spec->has_terminal; i++) {
                const PipeEnd end = i == 0 ? PIPE_WRITE_END : PIPE_READ_END;
                int ends[2], r = pipe_open(end, ends);

                if (r < 0)
                        return r;
                c->fds[i] = ends[!end];
                *own[i] = ends[end];
        }
        return 0;
}

static void close_copier_ends(SessionPipes *pipes) {
        close_fd(pipes->input_fd);
        close_fd(pipes->output_fd);
        close_fd(pipes->error_fd);
        close_fd(pipes->link_fd);
        *pipes = SESSION_PIPES_NULL;
}

/* Returns the PID, or -errno. */
static int fork_session_copier(SessionCommand *c) {
        SessionPipes pipes = SESSION_PIPES_NULL;
        int sockets[2] = { -EBADF, -EBADF }, r = open_command_pipes(c, &pipes);
        pid_t pid = -1, parent = getpid();

        if (r >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                r = -errno;
        pipes.link_fd = sockets[1];
        if (r >= 0) {
                pid = process_fork();
                r = pid < 0 ? -errno : (int) pid;
        }
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                close_fd(sockets[0]);
                close_command_ends(c);
                r = session_copy(c->spec, &pipes, parent);
                _exit(-MAX(r, -UINT8_MAX));
        }
        close_copier_ends(&pipes);
        c->link = (EpollSource){ sockets[0], on_session_copier_message };
        return r;
}

/* ---- the loop ---- */

static int watch_session_sigchld(SessionCommand *c) {
        sigset_t signals;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGCHLD);
        if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return -errno;
        (void) signal(SIGPIPE, SIG_IGN);
        c->signals = (EpollSource){ signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK),
                                    on_session_sigchld };
        if (c->signals.fd < 0)
                return -errno;
        return epoll_source_add(c->epoll_fd, &c->signals, EPOLLIN);
}

static int open_command_loop(SessionCommand *c) {
        int r;

        c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (c->epoll_fd < 0)
                return -errno;
        r = watch_session_sigchld(c);
        return r < 0 ? r : epoll_source_add(c->epoll_fd, &c->link, EPOLLIN);
}

static bool is_command_over(const SessionCommand *c) {
        return c->link.fd < 0 && (c->has_ended || now_awake_usec() >= c->deadline);
}

static void end_session_runtime(SessionCommand *c) {
        if (c->runtime_pid <= 0)
                return;
        (void) kill(c->runtime_pid, SIGKILL);
        while (waitpid(c->runtime_pid, NULL, 0) < 0 && errno == EINTR)
                ;
        kill_unstarted_command(c);
}

static void session_command_done(SessionCommand *c) {
        kill_session_command(c);
        end_session_runtime(c);
        terminal_free(c->terminal);
        close_command_ends(c);
        (void) remove_tree_at(AT_FDCWD, c->spec->directory);
}

/* Reports this to the client. */
static int refuse_session(const SessionSpec *spec, int r) {
        const SessionPipes none = SESSION_PIPES_NULL;
        SessionSpec refused = *spec;

        refused.refusal = strerror(-r);
        return session_copy(&refused, &none, getppid());
}

int session_command_run(const SessionSpec *spec) {
        cleanup_with(session_command_done) SessionCommand c = {
                .spec = spec,
                .link = EPOLL_SOURCE_NULL,
                .signals = EPOLL_SOURCE_NULL,
                .fds = { -EBADF, -EBADF, -EBADF },
                .deadline = USEC_INFINITY,
        };
        int r = fork_session_copier(&c);

        if (r < 0)
                return refuse_session(spec, r);
        close_fd(spec->socket_fd); /* the connection ends with the copier */
        r = open_command_loop(&c);
        while (r >= 0 && !is_command_over(&c))
                r = epoll_loop_run_once(c.epoll_fd, c.deadline);
        return r;
}

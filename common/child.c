/* SPDX-License-Identifier: Apache-2.0 */
#include "common/child.h"

#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
        ERROR_TAIL_SIZE = 4096,
        CHUNKS_PER_TURN = 64, /* more than a pipe holds */
};

struct Child {
        pid_t pid;
        child_done_t done;
        child_line_t on_line;
        void *userdata;
        sd_event_source *exit_source;
        sd_event_source *timeout_source;
        int output_fd;
        int error_fd;
        sd_event_source *output_source;
        sd_event_source *error_source;
        size_t output_max;
        Buffer output;
        size_t error_length;
        bool timed_out;
        bool reaped;
        char error[ERROR_TAIL_SIZE + 1];
};

static void append_child_output(Child *child, const char *data, size_t length) {
        (void) buffer_append(&child->output, data,
                             MIN(length, child->output_max - child->output.length), SIZE_MAX);
}

/* Passes on complete lines. A line longer than the buffer is dropped. */
static void pass_child_output_lines(Child *child) {
        Buffer *output = &child->output;
        char *start = output->data, *newline;

        while (start && (newline = strchr(start, '\n'))) {
                *newline = '\0';
                child->on_line(start, child->userdata);
                start = newline + 1;
        }
        if (!start)
                return;
        buffer_drop(output, (size_t) (start - output->data));
        if (output->length == child->output_max)
                buffer_drop(output, output->length);
}

/* Keeps the end, because the last line contains the reason. */
static void append_child_error(Child *child, const char *data, size_t length) {
        size_t excess;

        if (length > ERROR_TAIL_SIZE) {
                data += length - ERROR_TAIL_SIZE;
                length = ERROR_TAIL_SIZE;
        }
        excess = child->error_length + length > ERROR_TAIL_SIZE
                         ? child->error_length + length - ERROR_TAIL_SIZE
                         : 0;
        memmove(child->error, child->error + excess, child->error_length - excess);
        child->error_length -= excess;
        memcpy(child->error + child->error_length, data, length);
        child->error_length += length;
        child->error[child->error_length] = '\0';
}

/* Reads the available data up to a limit, so that other sources have their turn. False at the end
 * of the stream. */
static bool read_child_pipe(Child *child, int fd) {
        for (unsigned i = 0; i < CHUNKS_PER_TURN; i++) {
                char buffer[16 * 1024];
                ssize_t n = read(fd, buffer, sizeof(buffer));

                if (n < 0)
                        return errno == EAGAIN || errno == EINTR;
                if (n == 0)
                        return false;
                if (fd == child->output_fd) {
                        append_child_output(child, buffer, (size_t) n);
                        if (child->on_line)
                                pass_child_output_lines(child);
                } else
                        append_child_error(child, buffer, (size_t) n);
        }
        return true;
}

static int on_child_pipe_readable(sd_event_source *source, int fd, uint32_t events,
                                  void *userdata) {
        if (!read_child_pipe(userdata, fd))
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

static const char *last_error_line_of_child(char *text) {
        char *newline;

        for (size_t n = strlen(text); n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '); n--)
                text[n - 1] = '\0';
        newline = strrchr(text, '\n');
        return newline ? newline + 1 : text;
}

static int on_exit_of_child(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Child *child = userdata;
        ChildResult result = {
                .code = si->si_code,
                .status = si->si_status,
                .timed_out = child->timed_out,
        };

        child->reaped = true;
        /* The output of the child is in the pipes. A grandchild may keep them open, so their end is
         * not awaited. */
        (void) read_child_pipe(child, child->output_fd);
        (void) read_child_pipe(child, child->error_fd);
        result.output = strna(child->output.data);
        result.output_length = child->output.length;
        result.error = last_error_line_of_child(child->error);
        child->done(&result, child->userdata);
        child_free(child);
        return 0;
}

static int on_child_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Child *child = userdata;

        child->timed_out = true;
        (void) kill(child->pid, SIGKILL); /* not reaped yet, so the PID is still valid */
        return 0;
}

static int spawn_with_pipes(Child *child, char *const *argv, int input_fd, Error *reterr) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, defaults;
        cleanup_close int output_write = -EBADF, error_write = -EBADF;
        int pipes[2], r;

        r = pipe_open(PIPE_READ_END, pipes);
        if (r < 0)
                return r;
        child->output_fd = pipes[PIPE_READ_END];
        output_write = pipes[PIPE_WRITE_END];
        r = pipe_open(PIPE_READ_END, pipes);
        if (r < 0)
                return r;
        child->error_fd = pipes[PIPE_READ_END];
        error_write = pipes[PIPE_WRITE_END];

        (void) sigemptyset(&none);
        (void) sigfillset(&defaults);
        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        (void) posix_spawnattr_setflags(&attributes,
                                        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setsigdefault(&attributes, &defaults);
        r = input_fd > 0 ? posix_spawn_file_actions_adddup2(&actions, input_fd, STDIN_FILENO)
                         : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                                            O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, output_write, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, error_write, STDERR_FILENO);
        if (r == 0)
                r = posix_spawnp(&child->pid, argv[0], &actions, &attributes, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        if (r != 0)
                return error_setf(reterr, r, "cannot start '%s': %s", argv[0], strerror(r));
        return 0;
}

/* While a process is traced, its exit is reported before it can be waited for. sd-event would check
 * it only once; disabling the source for a moment makes it check again. */
int child_source_rearm(sd_event_source *source) {
        int r = sd_event_source_set_enabled(source, SD_EVENT_OFF);

        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ON);
}

static int watch_child(sd_event *event, Child *child, uint64_t timeout_usec) {
        int r;

        r = sd_event_add_child(event, &child->exit_source, child->pid, WEXITED, on_exit_of_child,
                               child);
        if (r < 0)
                return r;
        r = child_source_rearm(child->exit_source);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &child->output_source, child->output_fd, EPOLLIN,
                            on_child_pipe_readable, child);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &child->error_source, child->error_fd, EPOLLIN,
                            on_child_pipe_readable, child);
        if (r < 0)
                return r;
        if (timeout_usec > 0)
                return sd_event_add_time_relative(event, &child->timeout_source, CLOCK_AWAKE,
                                                  timeout_usec, 0, on_child_timeout, child);
        return 0;
}

int child_spawn(sd_event *event, const ChildSpec *spec, child_done_t done, void *userdata,
                Child **ret, Error *reterr) {
        Child *child = calloc(1, sizeof(*child));
        int r;

        if (!child)
                return -ENOMEM;
        child->output_fd = child->error_fd = -EBADF;
        child->output_max = spec->output_max;
        child->done = done;
        child->on_line = spec->on_line;
        child->userdata = userdata;
        child->reaped = true;

        DIE_AT("child.spawn");
        r = spawn_with_pipes(child, spec->argv, spec->input_fd, reterr);
        DIE_AT("child.spawned");
        if (r >= 0) {
                child->reaped = false;
                r = watch_child(event, child, spec->timeout_usec);
        }
        if (r < 0) {
                child_free(child);
                return r;
        }
        if (ret)
                *ret = child;
        return 0;
}

int child_spawn_detached(char *const *argv, int input_fd, int output_fd, pid_t *ret_pid) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, all;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        (void) sigemptyset(&none);
        (void) sigfillset(&all);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                             POSIX_SPAWN_SETSIGDEF);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setsigdefault(&attributes, &all);
        r = posix_spawn_file_actions_adddup2(&actions, input_fd, STDIN_FILENO);
        if (r == 0 && output_fd >= 0)
                r = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn(ret_pid, argv[0], &actions, &attributes, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        return -r;
}

Child *child_free(Child *child) {
        if (!child)
                return NULL;
        if (!child->reaped) {
                (void) kill(child->pid, SIGKILL);
                (void) waitid(P_PID, (id_t) child->pid, &(siginfo_t){ 0 }, WEXITED);
        }
        sd_event_source_disable_unref(child->exit_source);
        sd_event_source_disable_unref(child->timeout_source);
        sd_event_source_disable_unref(child->output_source);
        sd_event_source_disable_unref(child->error_source);
        close_fd(child->output_fd);
        close_fd(child->error_fd);
        buffer_erase(&child->output); /* it may be a secret */
        free(child);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/runtime.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/program-path.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum {
        LOG_TAIL_MAX = 64 * 1024,
        SENTENCE_MAX = 4 * 1024,
};

/* execv(3) takes arguments that are not const; no shell ever parses them. */
#define WORD(text) ((char *) (uintptr_t) (text))

/* A directory without the program, or with one that may not be executed, is skipped. */
static int execute_by_path(char **argv) {
        const char *directories = program_directories();
        int r = -ENOENT, q;

        do {
                cleanup_free char *program = NULL;

                q = program_path_next(&directories, argv[0], &program);
                if (q <= 0)
                        return q < 0 ? q : r;
                (void) execv(program, argv);
                if (errno != ENOENT && errno != ENOTDIR)
                        r = -errno;
        } while (r == -ENOENT || r == -EACCES);
        return r;
}

int runtime_execute(char **argv) {
        if (!strchr(argv[0], '/'))
                return execute_by_path(argv);
        (void) execv(argv[0], argv);
        return -errno;
}

int runtime_set_closed_input(void) {
        int pipes[2], r;

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        r = dup2(pipes[0], STDIN_FILENO) < 0 ? -errno : 0;
        close_fd(pipes[0]);
        close_fd(pipes[1]);
        return r;
}

/* A null device on a file system that is not in the mount tree and vanishes with the descriptor.
 */
static int open_private_null_device(void) {
        cleanup_close int context = fsopen("tmpfs", FSOPEN_CLOEXEC), root = -EBADF;
        int fd;

        if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        root = fsmount(context, FSMOUNT_CLOEXEC, 0);
        if (root < 0 || mknodat(root, "null", S_IFCHR | 0666, makedev(1, 3)) < 0)
                return -errno;
        fd = openat(root, "null", O_RDWR | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* As in Kubernetes, the input of a container is a null device, because scripts check whether it is
 * a pipe. runc replaces this device with the container's own, except if a volume is mounted at
 * /dev, so it must not be the node's. If the shim may not use devices, a pipe without a writer has
 * the same effect. */
static int set_null_input(void) {
        cleanup_close int fd = open_private_null_device();

        if (fd < 0)
                return runtime_set_closed_input();
        return dup2(fd, STDIN_FILENO) < 0 ? -errno : 0;
}

static int set_streams(const RuntimeStreams *streams) {
        int r = 0;

        if (streams->input_fd >= 0)
                r = dup2(streams->input_fd, STDIN_FILENO) < 0 ? -errno : 0;
        else if (!streams->terminal)
                r = set_null_input();
        if (r < 0)
                return r;
        if (dup2(streams->output_fd, STDOUT_FILENO) < 0 ||
            dup2(streams->error_fd, STDERR_FILENO) < 0)
                return -errno;
        return 0;
}

int runtime_exec_run(const Runtime *runtime, const char *bundle, const char *id,
                     const RuntimeStreams *streams, Error *reterr) {
        cleanup_free char *log = path_join(bundle, "runtime.log");
        cleanup_free char *pid_file = path_join(bundle, "pid");
        char *words[] = {
                WORD(runtime->program),
                WORD("--systemd-cgroup"), /* or the program: the command line then starts here */
                WORD("--root"),
                WORD(runtime->root),
                WORD("--log"),
                log,
                WORD("--log-format"),
                WORD("json"),
                WORD("run"),
                WORD("--detach"),
                WORD("--bundle"),
                WORD(bundle),
                WORD("--pid-file"),
                pid_file,
                WORD(streams->terminal ? "--console-socket" : id),
                WORD(streams->terminal),
                WORD(id),
                NULL,
        };
        char **argv = words;
        int r;

        if (!log || !pid_file)
                return -ENOMEM;
        if (!runtime->has_systemd_cgroup)
                *++argv = words[0];
        /* Removes the log of a failed attempt with this name. */
        (void) unlink(log);
        (void) unlink(pid_file);
        r = set_streams(streams);
        if (r < 0)
                return r;
        /* Execution from memory may be forbidden, for example by a security module. */
        if (runtime->copy_fd >= 0)
                (void) execveat(runtime->copy_fd, "", argv, environ, AT_EMPTY_PATH);
        r = runtime_execute(argv);
        return error_setf(reterr, -RUNTIME_MISSING, "cannot run '%s': %s", runtime->program,
                          strerror(-r));
}

int runtime_exec_in(const Runtime *runtime, const RuntimeExec *exec, Error *reterr) {
        char *const words[] = {
                WORD(runtime->program), WORD("--root"),       WORD(runtime->root),  WORD("--log"),
                WORD(exec->log),        WORD("--log-format"), WORD("json"),         WORD("exec"),
                WORD("--detach"),       WORD("--pid-file"),   WORD(exec->pid_file), WORD(exec->id),
        };
        size_t n = N_ELEMENTS(words), n_arguments = strv_length(exec->argv);
        char **argv = calloc(n + n_arguments + 1, sizeof(*argv));
        int r;

        if (!argv)
                return -ENOMEM;
        memcpy(argv, words, sizeof(words));
        memcpy(argv + n, exec->argv, n_arguments * sizeof(*argv));
        r = runtime_execute(argv);
        free(argv);
        return error_setf(reterr, -RUNTIME_MISSING, "cannot run '%s': %s", runtime->program,
                          strerror(-r));
}

int runtime_read_pid(const char *file, pid_t *ret) {
        cleanup_free char *text = NULL;
        char *end;
        long pid;
        int r;

        r = read_file_at(AT_FDCWD, file, 64, &text, NULL);
        if (r < 0)
                return r;
        errno = 0;
        pid = strtol(text, &end, 10);
        if (errno != 0 || end == text || pid <= 1 || pid > INT32_MAX)
                return -EINVAL;
        *ret = (pid_t) pid;
        return 0;
}

void runtime_remove_pid_file(const char *file) {
        cleanup_free char *temporary = NULL;
        const char *slash = strrchr(file, '/');

        (void) unlink(file);
        if (slash)
                temporary = text_format("%.*s.%s", (int) (slash + 1 - file), file, slash + 1);
        if (temporary)
                (void) unlink(temporary);
}

static int spawn_runtime_quietly(char **argv, pid_t *ret_pid, Error *reterr) {
        posix_spawn_file_actions_t actions;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        r = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
        if (r == 0)
                r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        return r == 0 ? 0 : error_setf(reterr, r, "cannot run '%s': %s", argv[0], strerror(r));
}

/* Waits for the child; kills it at the time limit. */
static int wait_for_deletion(const Runtime *runtime, pid_t pid, int *ret_status, Error *reterr) {
        cleanup_close int fd = pidfd_open(pid, 0);
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        bool late =
                fd >= 0 && poll(&poll_fd, 1, (int) (runtime->timeout_usec / USEC_PER_MSEC)) == 0;

        if (late)
                (void) kill(pid, SIGKILL);
        while (waitpid(pid, ret_status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (!late)
                return 0;
        return error_setf(reterr, ETIMEDOUT, "'%s delete' did not end within %llu s and was killed",
                          runtime->program,
                          (unsigned long long) (runtime->timeout_usec / USEC_PER_SEC));
}

int runtime_delete(const Runtime *runtime, const char *bundle, const char *id, Error *reterr) {
        cleanup_free char *state = path_join(runtime->root, id);
        cleanup_free char *log = bundle[0] ? path_join(bundle, "runtime.log") : strdup("/dev/null");
        cleanup_free char *message = NULL;
        char *argv[] = {
                WORD(runtime->program),
                WORD("--root"),
                WORD(runtime->root),
                WORD("--log"),
                log,
                WORD("--log-format"),
                WORD("json"),
                WORD("delete"),
                WORD("--force"),
                WORD(id),
                NULL,
        };
        int status = 0, r;
        pid_t pid = 0;

        if (!state || !log)
                return -ENOMEM;
        if (access(state, F_OK) < 0 && errno == ENOENT)
                return 0;
        FAIL_AT("runtime.delete");
        r = spawn_runtime_quietly(argv, &pid, reterr);
        if (r < 0)
                return r;
        r = wait_for_deletion(runtime, pid, &status, reterr);
        if (r < 0)
                return r;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        message = runtime_log_last_error(bundle);
        if (!message)
                message = runtime_describe_end(runtime->program, "delete", status);
        return error_setf(reterr, EIO, "cannot delete the container: %s", strna(message));
}

/* {"level":"error","msg":"…","time":"…"}; NULL for any other line. */
static char *error_message_of_line(const char *line, size_t length) {
        json_t *root = json_loadb(line, length, 0, NULL);
        const char *level = json_text(root, "level");
        const char *text = json_text(root, "msg");
        char *message = NULL;

        if (level && text && (streq(level, "error") || streq(level, "fatal")))
                message = strndup(text, SENTENCE_MAX - 1);
        json_decref(root);
        return message;
}

char *runtime_log_last_error(const char *bundle) {
        cleanup_free char *path = path_join(bundle, "runtime.log");

        return path ? runtime_log_last_error_at(path) : NULL;
}

char *runtime_log_last_error_at(const char *path) {
        cleanup_free char *tail = NULL;
        cleanup_close int fd = -EBADF;
        off_t size;
        ssize_t n;

        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        tail = malloc(LOG_TAIL_MAX);
        if (fd < 0 || !tail)
                return NULL;
        size = lseek(fd, 0, SEEK_END);
        n = pread(fd, tail, LOG_TAIL_MAX, MAX(size - LOG_TAIL_MAX, (off_t) 0));
        while (n > 0) {
                char *newline = memrchr(tail, '\n', (size_t) n), *message;
                char *line = newline ? newline + 1 : tail;

                message = error_message_of_line(line, (size_t) (tail + n - line));
                if (message)
                        return message;
                n = newline ? newline - tail : 0;
        }
        return NULL;
}

char *runtime_describe_end(const char *program, const char *verb, int status) {
        if (WIFEXITED(status))
                return text_format("'%s %s' ended with status %d", program, verb,
                                   WEXITSTATUS(status));
        return text_format("'%s %s' was killed by signal %d (%s)", program, verb, WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
}

void runtime_log_missing(const Runtime *runtime, const char *bundle, int error) {
        cleanup_free char *path = path_join(bundle, "runtime.log");
        json_t *line =
                json_pack("{ssso}", "level", "error", "msg",
                          json_sprintf("cannot run '%s': %s", runtime->program, strerror(error)));

        if (path && line)
                (void) json_dump_file(line, path, JSON_COMPACT);
        json_decref(line);
}

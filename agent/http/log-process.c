/* SPDX-License-Identifier: Apache-2.0 */

/* One process for a log; see the header. Instead of the agent, it waits for its client to read and
 * for inotify to report more. SIGTERM means that the attempt has ended; the end of the agent is
 * treated the same way, because nothing is known about the attempt from then on. */

#include "agent/http/log-process.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/list.h"
#include "common/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

enum {
        BLOCK_SIZE = 64 * 1024,
        PIPE_SIZE = 4 * BLOCK_SIZE,
        LOOK_MSEC = 1000, /* without inotify */
};

struct LogProcess {
        LogProcesses *processes;
        ForkedTask *task;
        char *directory;
        unsigned attempt;
        LogProcess *previous, *next;
};

/* ---- in the process ---- */

typedef struct LogWork {
        LogSpec spec;
        pid_t agent;
} LogWork;

/* The events that a follower waits for. */
typedef struct LogWatch {
        int written_fd; /* inotify; -EBADF: none is left, or the log is not followed */
        int ended_fd;   /* SIGTERM */
} LogWatch;

static int open_end_signal(const LogWork *work) {
        sigset_t signals;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) signal(SIGPIPE, SIG_IGN);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
                return -errno;
        if (getppid() != work->agent) /* it has already ended */
                (void) raise(SIGTERM);
        return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The watch is added before the first byte is read, so that no write is missed. All processes of
 * root together have 128 inotify instances, unless fs.inotify.max_user_instances is set to another
 * number. */
static int watch_log_files(const LogReader *reader) {
        char path[sizeof("/proc/self/fd/2147483647")];
        int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", log_reader_dir_fd(reader));
        if (fd >= 0 && inotify_add_watch(fd, path, LOG_READER_EVENTS) >= 0)
                return fd;
        close_fd(fd);
        return -EBADF;
}

static void drain_descriptor(int fd) {
        char buffer[4096];

        while (read(fd, buffer, sizeof(buffer)) > 0)
                ;
}

/* Waits until more is written, or until nothing more will be written. -EPIPE: the client is gone.
 */
static int wait_for_more(LogReader *reader, const LogWatch *watch, int client_fd) {
        struct pollfd fds[] = { { .fd = watch->written_fd, .events = POLLIN },
                                { .fd = watch->ended_fd, .events = POLLIN },
                                { .fd = client_fd } };

        if (poll(fds, N_ELEMENTS(fds), watch->written_fd >= 0 ? -1 : LOOK_MSEC) < 0)
                return errno == EINTR ? 0 : -errno;
        if (fds[2].revents)
                return -EPIPE;
        if (fds[1].revents) {
                drain_descriptor(watch->ended_fd);
                log_reader_set_ended(reader);
        }
        drain_descriptor(watch->written_fd);
        return 0;
}

static int copy_log(LogReader *reader, const LogWatch *watch, int client_fd) {
        static char block[BLOCK_SIZE];

        for (;;) {
                ssize_t n = log_reader_read(reader, block, sizeof(block));
                int r = 0;

                if (n > 0)
                        r = write_all(client_fd, block, (size_t) n);
                else if (n == 0)
                        r = wait_for_more(reader, watch, client_fd);
                else if (n != -EAGAIN)
                        return n == -ENODATA ? 0 : (int) n;
                if (r < 0)
                        return r;
        }
}

static int run_log_process(int fd, const void *userdata) {
        const LogWork *work = userdata;
        const LogSpec *spec = &work->spec;
        cleanup_with(log_reader_freep) LogReader *reader = NULL;
        LogWatch watch = { -EBADF, open_end_signal(work) };
        int r;

        (void) prctl(PR_SET_NAME, "log-reader");
        (void) fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
        if (watch.ended_fd < 0)
                return -errno;
        r = log_reader_new(spec, &reader, NULL);
        if (r < 0)
                return r;
        if (spec->options.follow && spec->is_live)
                watch.written_fd = watch_log_files(reader);
        return copy_log(reader, &watch, fd);
}

/* ---- in the agent ---- */

static void log_process_free(LogProcess *process) {
        LogProcesses *processes = process->processes;

        if (process->previous)
                process->previous->next = process->next;
        else
                processes->first = process->next;
        if (process->next)
                process->next->previous = process->previous;
        processes->n--;
        forked_task_free(process->task);
        free(process->directory);
        free(process);
}

static void on_log_process_end(int r, void *userdata) {
        LogProcess *process = userdata;

        if (r < 0 && r != -EPIPE)
                (void) log_warning_errno(r, "%s/%u.log: a client does not receive the rest of it",
                                         process->directory, process->attempt);
        process->task = NULL;
        log_process_free(process);
}

static LogProcess *log_process_new(LogProcesses *processes, const LogSpec *spec) {
        LogProcess *process = calloc(1, sizeof(*process));
        char *directory = strdup(spec->directory);

        if (!process || !directory) {
                free(process);
                free(directory);
                return NULL;
        }
        *process = (LogProcess){ .processes = processes,
                                 .directory = directory,
                                 .attempt = spec->attempt,
                                 .next = processes->first };
        if (process->next)
                process->next->previous = process;
        processes->first = process;
        processes->n++;
        return process;
}

/* Checks the request for errors that the process could not report. */
static int check_log(const LogSpec *spec, Error *reterr) {
        cleanup_with(log_reader_freep) LogReader *reader = NULL;

        return log_reader_new(spec, &reader, reterr);
}

static unsigned count_log_processes(const LogProcesses *processes, const char *directory,
                                    size_t length) {
        unsigned n = 0;

        list_foreach(process, processes->first)
                n += strncmp(process->directory, directory, length) == 0;
        return n;
}

/* From a directory …/<namespace>_<pod>_<uid>/<container>. */
static int check_log_limits(const LogProcesses *processes, const char *directory, Error *reterr) {
        const char *container = strrchr(directory, '/');
        const char *pod =
                container ? memrchr(directory, '/', (size_t) (container - directory)) : NULL;
        const char *namespace_end = pod ? strchr(pod, '_') : NULL;
        size_t length = container ? (size_t) (container - directory) + 1 : 0;

        if (processes->n >= LOG_PROCESSES_MAX)
                return error_setf(reterr, EBUSY, "too many clients read logs (at most %d)",
                                  LOG_PROCESSES_MAX);
        if (count_log_processes(processes, directory, length) >= LOG_PROCESSES_OF_POD_MAX)
                return error_setf(reterr, EBUSY,
                                  "too many clients read logs of this pod (at most %d)",
                                  LOG_PROCESSES_OF_POD_MAX);
        length = namespace_end ? (size_t) (namespace_end - directory) + 1 : length;
        if (count_log_processes(processes, directory, length) >= LOG_PROCESSES_OF_NAMESPACE_MAX)
                return error_setf(reterr, EBUSY,
                                  "too many clients read logs of this namespace (at most %d)",
                                  LOG_PROCESSES_OF_NAMESPACE_MAX);
        return 0;
}

int log_process_start(LogProcesses *processes, const LogSpec *spec, Error *reterr) {
        const LogWork work = { *spec, getpid() };
        LogProcess *process;
        int r;

        r = check_log_limits(processes, spec->directory, reterr);
        if (r < 0)
                return r;
        r = check_log(spec, reterr);
        if (r < 0)
                return r;
        process = log_process_new(processes, spec);
        if (!process)
                return -ENOMEM;
        r = forked_task_start_piped(processes->event, run_log_process, &work, on_log_process_end,
                                    process, &process->task);
        if (r < 0)
                log_process_free(process);
        return r;
}

void log_processes_notify_end(const LogProcesses *processes, const char *directory,
                              unsigned attempt) {
        list_foreach(process, processes->first)
                if (process->attempt == attempt && streq(process->directory, directory))
                        forked_task_signal(process->task, SIGTERM);
}

void log_processes_done(LogProcesses *processes) {
        while (processes->first)
                log_process_free(processes->first);
}

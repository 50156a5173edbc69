/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/task.h"

#include "agent/shim/process-fork.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/pipe.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct Task {
        Task *next;
        pid_t pid;
        int report_fd;
        uint64_t deadline;
        bool timed_out;
        task_done_t done;
        void *userdata;
};

/* The text that a task writes to its pipe if it did not become a program; it fits into one
 * write. */
typedef struct TaskReport {
        int code;
        char message[4092];
} TaskReport;

_Static_assert(sizeof(TaskReport) <= PIPE_BUF, "a report must fit into the pipe");

bool task_succeeded(const TaskResult *result) {
        return WIFEXITED(result->status) && WEXITSTATUS(result->status) == 0 && result->code >= 0;
}

const char *task_explanation(const TaskResult *result) {
        if (result->message[0])
                return result->message;
        return result->timed_out ? "it exceeded its time limit and was killed" : "it was killed";
}

/* A child starts with the signals and limits that the shim was started with. */
static void reset_task_process(const TaskSpec *spec, pid_t shim) {
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void) signal(i, SIG_DFL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) setpgid(0, 0);
        if (!spec->outlives_shim)
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != shim)
                _exit(EXIT_FAILURE);
        (void) close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
        /* The OOM killer spares the shim; programs that it starts are not spared, unless they
         * request it. */
        (void) write_value_at(AT_FDCWD, "/proc/self/oom_score_adj", "0");
}

static _Noreturn void run_task_child(const TaskSpec *spec, int report_fd, pid_t shim) {
        Error error = ERROR_NULL;
        TaskReport report = { 0 };
        int r;

        reset_task_process(spec, shim);
        r = spec->main(spec->userdata, &error);
        report.code = r;
        if (r < 0 || error.message)
                (void) snprintf(report.message, sizeof(report.message), "%s",
                                error_message(&error, r));
        (void) write_all(report_fd, &report,
                         offsetof(TaskReport, message) + strlen(report.message) + 1);
        _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

int task_start(TaskList *tasks, const TaskSpec *spec) {
        cleanup_free Task *task = calloc(1, sizeof(*task));
        int pipes[2], r;
        pid_t shim = getpid();

        if (!task)
                return -ENOMEM;
        r = pipe_open(PIPE_READ_END, pipes);
        if (r < 0)
                return r;
        task->pid = process_fork();
        if (task->pid < 0) {
                r = -errno;
                close_fd(pipes[0]);
                close_fd(pipes[1]);
                return r;
        }
        if (task->pid == 0)
                run_task_child(spec, pipes[1], shim);

        (void) setpgid(task->pid, task->pid); /* done in both processes, because either may run
                                               * first */
        close_fd(pipes[1]);
        task->report_fd = pipes[0];
        task->deadline = spec->deadline;
        task->done = spec->done;
        task->userdata = spec->userdata;
        task->next = tasks->first;
        tasks->first = TAKE_PTR(task);
        return 0;
}

bool task_reap(TaskList *tasks, pid_t pid, int status) {
        TaskReport report = { 0 };
        TaskResult result = { .status = status, .message = report.message };

        for (Task **link = &tasks->first; *link; link = &(*link)->next) {
                Task *task = *link;

                if (task->pid != pid)
                        continue;
                *link = task->next;
                if (read(task->report_fd, &report, sizeof(report) - 1) >= (ssize_t) sizeof(int))
                        result.code = report.code;
                result.timed_out = task->timed_out;
                close_fd(task->report_fd);
                task->done(&result, task->userdata);
                free(task);
                return true;
        }
        return false;
}

void tasks_limit_deadline(TaskList *tasks, uint64_t deadline) {
        for (Task *task = tasks->first; task; task = task->next)
                task->deadline = MIN(task->deadline, deadline);
}

uint64_t tasks_next_deadline(const TaskList *tasks) {
        uint64_t deadline = USEC_INFINITY;

        for (const Task *task = tasks->first; task; task = task->next)
                if (!task->timed_out)
                        deadline = MIN(deadline, task->deadline);
        return deadline;
}

void tasks_expire(TaskList *tasks, uint64_t now_awake) {
        for (Task *task = tasks->first; task; task = task->next)
                if (!task->timed_out && task->deadline <= now_awake) {
                        task->timed_out = true;
                        /* Also kills the process group, because a runtime has children. The task
                         * has not been reaped yet, so both IDs are valid. */
                        (void) kill(-task->pid, SIGKILL);
                        (void) kill(task->pid, SIGKILL);
                }
}

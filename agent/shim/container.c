/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/container.h"

#include "agent/shim/maintenance.h"
#include "agent/shim/mountinfo.h"
#include "agent/shim/mounts.h"
#include "agent/shim/oom.h"
#include "agent/shim/pid-namespace.h"
#include "agent/shim/rootfs.h"
#include "agent/shim/runtime.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory-trim.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* All changes of an attempt's state are made here: from STARTING to RUNNING, ENDING and EXITED, or
 * to FAILED. Work that takes time is a job: the strings that its task needs, and the ID of the
 * attempt, whose record may be dropped in the meantime. */

/* How long the end of a container may be delayed to complete its log: if a disk hangs, the end is
 * reported anyway.
 */
#define DRAIN_USEC_MAX (30 * USEC_PER_SEC)

typedef struct ContainerJob {
        Shim *shim;
        char *id;
        char *bundle;
        char *cgroup; /* of the container, or NULL */
        char **directories;
        char *terminal; /* socket for receiving the terminal, or NULL */
        int target_fd;  /* PID namespace of its target; or -EBADF */
        int input_fd;   /* descriptors, which are -EBADF in the shim itself */
        int stdout_fd;
        int stderr_fd;
        int copy_fd; /* of the runtime, or -EBADF; borrowed until the task has started */
} ContainerJob;

static ContainerJob *container_job_free(ContainerJob *job) {
        if (!job)
                return NULL;
        close_fd(job->target_fd);
        close_fd(job->input_fd);
        close_fd(job->stdout_fd);
        close_fd(job->stderr_fd);
        free(job->terminal);
        strv_free(job->directories);
        free(job->cgroup);
        free(job->bundle);
        free(job->id);
        free(job);
        return NULL;
}
DEFINE_CLEANUP(ContainerJob *, container_job_free)

/* Returns the cgroup for a file in it: /sys/fs/cgroup/<path>/<file>; on v1 with the controller's
 * name in between. NULL for any other path. */
static char *cgroup_of_file(const char *file) {
        static const char root[] = "/sys/fs/cgroup/";
        const char *end = file ? strrchr(file, '/') : NULL, *begin;

        if (!end || strncmp(file, root, strlen(root)) != 0)
                return NULL;
        begin = file + strlen(root) - 1;
        if (cgroup_version() == 1)
                begin = strchr(begin + 1, '/');
        return begin < end ? strndup(begin, (size_t) (end - begin)) : NULL;
}

char *container_cgroup(const Attempt *attempt) {
        return cgroup_of_file(attempt->events_file);
}

/* If a second attempt has processes in the cgroup, killing the cgroup would also end that attempt.
 */
static bool shares_cgroup(const AttemptList *list, const Attempt *attempt) {
        for (const Attempt *other = list->first; other; other = other->next)
                if (other != attempt && !other->deleted &&
                    streq_ptr(other->events_file, attempt->events_file))
                        return true;
        return false;
}

static int container_job_new(Shim *shim, const Attempt *attempt, ContainerJob **ret) {
        cleanup_with(container_job_freep) ContainerJob *job = calloc(1, sizeof(*job));

        if (!job)
                return -ENOMEM;
        job->target_fd = job->input_fd = job->stdout_fd = job->stderr_fd = -EBADF;
        job->copy_fd = -EBADF;
        job->shim = shim;
        job->id = strdup(attempt->id);
        job->bundle = strdup(strna(attempt->bundle));
        if (!shares_cgroup(&shim->attempts, attempt))
                job->cgroup = cgroup_of_file(attempt->events_file);
        if (!job->id || !job->bundle)
                return -ENOMEM;
        *ret = TAKE_PTR(job);
        return 0;
}

/* Starts a task, which takes over the job. A job that cannot be started is reported to 'done' as
 * failed, so that both cases are handled in one place. */
static void container_job_start(ContainerJob *job, task_main_t main, task_done_t done,
                                uint64_t deadline) {
        TaskSpec spec = { .main = main, .done = done, .userdata = job, .deadline = deadline };
        int r = task_start(&job->shim->tasks, &spec);

        /* The task has its own copy. This one would keep the pipes open. */
        job->target_fd = close_fd(job->target_fd);
        job->input_fd = close_fd(job->input_fd);
        job->stdout_fd = close_fd(job->stdout_fd);
        job->stderr_fd = close_fd(job->stderr_fd);
        job->copy_fd = -EBADF;
        if (r < 0) {
                char message[128];

                (void) snprintf(message, sizeof(message), "the shim cannot fork: %s", strerror(-r));
                done(&(TaskResult){ .code = r, .message = message }, job);
        }
}

static void send_attempt_event(Shim *shim, const Attempt *attempt, ShimEventType type) {
        ShimEvent event = attempt_event(attempt, type);

        agent_connection_send(&shim->connection, &event);
}

static void send_container_error(Shim *shim, const char *id, const char *why) {
        log_warning("Container '%.12s': %s", id, why);
        agent_connection_send(&shim->connection,
                              &(ShimEvent){ .type = SHIM_EVENT_ERROR, .id = id, .message = why });
}

/* --- undoing a failed start --------------------------------------------------------------- */

/* In a task: removes everything that belongs to an attempt except its log and its bundle's
 * files. */
static int undo_start_main(void *userdata, Error *reterr) {
        ContainerJob *job = userdata;
        Runtime runtime = shim_runtime(job->shim);
        int r = runtime_delete(&runtime, job->bundle, job->id, reterr), q;

        /* An interrupted runtime may have left processes and cgroups that it has not recorded. */
        q = job->cgroup ? shim_remove_cgroup(job->cgroup) : 0;
        if (q < 0 && r >= 0)
                r = error_setf(reterr, -q, "the cgroup %s remains", job->cgroup);
        q = mounts_undo(job->bundle);
        if (q < 0 && r >= 0)
                r = error_setf(reterr, -q, "mounts remain below %s", job->bundle);
        return r;
}

static void on_start_undone(const TaskResult *result, void *userdata) {
        cleanup_with(container_job_freep) ContainerJob *job = userdata;
        Attempt *attempt = attempt_find(&job->shim->attempts, job->id);

        if (!task_succeeded(result))
                log_warning("Container '%.12s': %s", job->id, task_explanation(result));
        if (!attempt)
                return;
        attempt->state = ATTEMPT_FAILED;
        send_attempt_event(job->shim, attempt, SHIM_EVENT_START_FAILED);
}

static void fail_container_start(Shim *shim, Attempt *attempt, bool runtime_failed,
                                 const char *message) {
        ContainerJob *job = NULL;

        attempt->runtime_failed = runtime_failed;
        attempt->message = strdup(message);
        attempt->output = runtime_failed ? container_output_free(attempt->output)
                                         : container_output_discard(attempt->output);
        if (container_job_new(shim, attempt, &job) < 0) {
                attempt->state = ATTEMPT_FAILED;
                send_attempt_event(shim, attempt, SHIM_EVENT_START_FAILED);
                return;
        }
        container_job_start(job, undo_start_main, on_start_undone, USEC_INFINITY);
}

/* --- start -------------------------------------------------------------------------------- */

/* In a task: sets up the mounts, then becomes the runtime. */
static int run_container_main(void *userdata, Error *reterr) {
        ContainerJob *job = userdata;
        Runtime runtime = shim_runtime(job->shim);
        cleanup_free char *fstab = path_join(job->bundle, "fstab");
        cleanup_free char *rootfs = path_join(job->bundle, "rootfs");
        int r;

        if (!fstab || !rootfs)
                return -ENOMEM;
        if (!path_is_beneath(job->bundle, job->shim->options->run_dir))
                return error_setf(reterr, EXDEV, "the bundle '%s' is not below '%s'", job->bundle,
                                  job->shim->options->run_dir);
        FAIL_AT("container.start");
        r = mounts_apply(fstab, job->bundle, -EBADF, reterr);
        if (r >= 0)
                r = rootfs_check(rootfs, reterr);
        if (r < 0)
                return r;
        if (job->target_fd >= 0)
                r = pid_namespace_bind_fd(job->bundle, job->target_fd, reterr);
        if (r < 0)
                return r;
        FAIL_AT("container.run");
        runtime.copy_fd = job->copy_fd;
        return runtime_exec_run(&runtime, job->bundle, job->id,
                                &(RuntimeStreams){ .input_fd = job->input_fd,
                                                   .output_fd = job->stdout_fd,
                                                   .error_fd = job->stderr_fd,
                                                   .terminal = job->terminal },
                                reterr);
}

static char *explain_start_failure(const ContainerJob *job, Attempt *attempt,
                                   const TaskResult *result) {
        const char *program = job->shim->options->runtime;
        char *message = NULL;

        if (result->message[0])
                return strdup(result->message);
        if (!result->timed_out)
                message = runtime_log_last_error(job->bundle);
        if (!message && !result->timed_out)
                message = container_output_last_line(attempt->output);
        if (message)
                return message;
        if (!result->timed_out)
                return runtime_describe_end(program, "run", result->status);
        return text_format(
                "'%s run' did not end within %llu s and was killed", program,
                (unsigned long long) (job->shim->options->runtime_timeout_usec / USEC_PER_SEC));
}

static bool shares_pid_namespace(pid_t pid) {
        char path[sizeof("/proc/4294967295/ns/pid")];
        struct stat ours, theirs;

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
        /* A process that has already ended has no namespaces; looking for its remains is
         * harmless. */
        return stat("/proc/self/ns/pid", &ours) < 0 || stat(path, &theirs) < 0 ||
               ours.st_ino == theirs.st_ino;
}

static void mark_attempt_running(Shim *shim, Attempt *attempt, pid_t pid) {
        int status = 0, r = shim_claim_process(shim, pid, &status);

        if (r < 0) {
                fail_container_start(shim, attempt, true,
                                     "the runtime left a process that is not a child of the shim");
                return;
        }
        attempt->state = ATTEMPT_RUNNING;
        attempt->pid = pid;
        attempt->started_at = now_realtime_usec();
        attempt->shares_pids =
                attempt->has_target || shim->pause_pid > 0 || shares_pid_namespace(pid);
        send_attempt_event(shim, attempt, SHIM_EVENT_STARTED);
        container_output_commit(attempt->output);
        if (r == 0)
                container_exited(shim, attempt, status);
        else if (attempt->signal_at == USEC_INFINITY && attempt->stop_signal != 0)
                (void) kill(pid, attempt->stop_signal); /* a stop was requested in the meantime */
        memory_trim();
}

static void on_run_task_done(const TaskResult *result, void *userdata) {
        cleanup_with(container_job_freep) ContainerJob *job = userdata;
        Attempt *attempt = attempt_find(&job->shim->attempts, job->id);
        pid_t pid = -1;

        DIE_AT("container.ran");
        if (!attempt)
                return;
        if (task_succeeded(result)) {
                cleanup_free char *file = path_join(job->bundle, "pid");
                int r = file ? runtime_read_pid(file, &pid) : -ENOMEM;

                if (r >= 0)
                        mark_attempt_running(job->shim, attempt, pid);
                else
                        fail_container_start(
                                job->shim, attempt, true,
                                "the runtime wrote no PID of the process that it started");
        } else {
                cleanup_free char *message = explain_start_failure(job, attempt, result);

                fail_container_start(job->shim, attempt,
                                     result->message[0] == '\0' || result->code == RUNTIME_MISSING,
                                     message ? message : "out of memory");
        }
}

static const char *run_refusal_message(int r) {
        switch (r) {
        case -EINVAL:
                return "the container ID is invalid";
        case -ENOBUFS:
                return "too many containers are not deleted yet";
        default:
                return strerror(-r);
        }
}

/* For requests without a record of the attempt. If the ID is already used, that attempt has its own
 * events, so it is not reported as failed. */
static void refuse_container_run(Shim *shim, const ShimRequest *request, int r) {
        if (r == -EEXIST)
                send_container_error(shim, request->id, "This container ID is in use");
        else
                agent_connection_send(&shim->connection,
                                      &(ShimEvent){ .type = SHIM_EVENT_START_FAILED,
                                                    .id = request->id,
                                                    .name = request->name,
                                                    .attempt = request->attempt,
                                                    .note = request->note,
                                                    .message = run_refusal_message(r) });
}

/* The socket is in the directory of the shim's own socket, because the length limit for socket
 * paths leaves room for only a few letters. */
static char *container_terminal_path(const Shim *shim, const char *id) {
        return text_format("%s/tty%.8s", shim->pod_dir, id);
}

/* Creates a standard input that is open and silent, and a terminal, if they are requested. */
static int open_container_input(Shim *shim, const ShimRequest *request, const Attempt *attempt,
                                ContainerJob *job, Error *reterr) {
        if (request->keeps_early && request->has_input)
                container_output_keep_early(attempt->output);
        if (request->has_terminal) {
                job->terminal = container_terminal_path(shim, attempt->id);
                if (!job->terminal)
                        return -ENOMEM;
                return container_output_expect_terminal(attempt->output, job->terminal, reterr);
        }
        if (!request->has_input)
                return 0;
        job->input_fd = container_output_open_input(attempt->output);
        return MIN(job->input_fd, 0);
}

/* Opens the PID namespace of the container's target. The target is the shim's child and has not
 * been reaped, so its PID is still valid. */
static int open_target_namespace(const Shim *shim, const ShimRequest *request, Attempt *attempt,
                                 ContainerJob *job, Error *reterr) {
        const Attempt *target =
                request->target ? attempt_find(&shim->attempts, request->target) : NULL;
        char path[sizeof("/proc/4294967295/ns/pid")];

        attempt->has_target = request->target != NULL;
        if (!request->target)
                return 0;
        if (!target || target->state != ATTEMPT_RUNNING)
                return error_setf(reterr, ESRCH, "the target container is not running");
        (void) snprintf(path, sizeof(path), "/proc/%d/ns/pid", target->pid);
        job->target_fd = open(path, O_RDONLY | O_CLOEXEC);
        if (job->target_fd < 0)
                return error_setf(reterr, errno,
                                  "cannot open the PID namespace of container '%s': %s",
                                  target->name, strerror(errno));
        return 0;
}

/* Creates the pipes of its output, and opens the log. */
static int open_container_output(Shim *shim, const ShimRequest *request, Attempt *attempt,
                                 int ret_fds[2], Error *reterr) {
        return container_output_new(&shim->copier, request->log, shim->log_limits,
                                    &request->journal_fields, &attempt->output, ret_fds, reterr);
}

void container_run(Shim *shim, const ShimRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        Attempt *attempt;
        int fds[2], r;
        ContainerJob *job;

        if (shim->tearing_down) {
                send_container_error(shim, request->id, "The pod is being terminated");
                return;
        }
        r = attempt_new(&shim->attempts, request, &attempt);
        if (r < 0) {
                refuse_container_run(shim, request, r);
                return;
        }
        attempt->oom_kills_before = oom_kills_of_pod(attempt->events_file);
        if (!shim->ready) {
                fail_container_start(shim, attempt, false, "the sandbox is not set up");
                return;
        }
        r = open_container_output(shim, request, attempt, fds, &error);
        if (r < 0) {
                fail_container_start(shim, attempt, false, error_message(&error, r));
                return;
        }
        r = container_job_new(shim, attempt, &job);
        if (r < 0) {
                close_fd(fds[0]);
                close_fd(fds[1]);
                fail_container_start(shim, attempt, false, strerror(-r));
                return;
        }
        job->stdout_fd = fds[0];
        job->stderr_fd = fds[1];
        job->copy_fd = shim->connection.received_fd;
        r = open_target_namespace(shim, request, attempt, job, &error);
        if (r >= 0)
                r = open_container_input(shim, request, attempt, job, &error);
        if (r < 0) {
                container_job_free(job);
                fail_container_start(shim, attempt, false, error_message(&error, r));
                return;
        }
        container_job_start(job, run_container_main, on_run_task_done,
                            now_awake_usec() + shim->options->runtime_timeout_usec);
}

/* --- stop --------------------------------------------------------------------------------- */

static int kill_cgroup_main(void *userdata, Error *reterr) {
        const ContainerJob *job = userdata;

        return cgroup_kill(job->cgroup);
}

static void on_cgroup_killed(const TaskResult *result, void *userdata) {
        cleanup_with(container_job_freep) ContainerJob *job = userdata;

        if (!task_succeeded(result))
                log_warning("Container '%.12s': cannot kill its processes: %s", job->id,
                            task_explanation(result));
}

static void kill_container_cgroup(Shim *shim, const Attempt *attempt) {
        ContainerJob *job = NULL;

        if (container_job_new(shim, attempt, &job) < 0)
                return;
        if (job->cgroup)
                container_job_start(job, kill_cgroup_main, on_cgroup_killed, USEC_INFINITY);
        else
                container_job_free(job);
}

/* The process is the shim's child and has not been reaped, so its PID is still valid. A frozen
 * process (cgroup v1) is killed only together with its cgroup. */
static void kill_container(Shim *shim, Attempt *attempt) {
        attempt->kill_at = USEC_INFINITY;
        (void) kill(attempt->pid, SIGKILL);
        kill_container_cgroup(shim, attempt);
}

static void send_stop_signal(Attempt *attempt) {
        attempt->signal_at = USEC_INFINITY;
        if (attempt->state == ATTEMPT_RUNNING)
                (void) kill(attempt->pid, attempt->stop_signal);
}

static uint64_t deadline_after(uint64_t now, uint64_t usec) {
        return now + MIN(usec, USEC_INFINITY / 2);
}

void container_schedule_stop(Shim *shim, const ShimRequest *request) {
        Attempt *attempt = attempt_find(&shim->attempts, request->id);
        uint64_t now = now_awake_usec(), signal_at = deadline_after(now, request->delay_usec);

        if (!attempt || (attempt->state != ATTEMPT_RUNNING && attempt->state != ATTEMPT_STARTING))
                return;
        if (attempt->stop_signal == 0) {
                bool valid = request->signal > 0 && request->signal <= SIGRTMAX;

                attempt->stop_signal = valid ? request->signal : SIGTERM;
                attempt->signal_at = signal_at;
        } else if (attempt->signal_at != USEC_INFINITY)
                attempt->signal_at = MIN(attempt->signal_at, signal_at);
        attempt->kill_at = MIN(attempt->kill_at, deadline_after(now, request->grace_usec));
        containers_send_due_signals(shim, now);
}

void container_set_checkpoint(Shim *shim, const ShimRequest *request) {
        Attempt *attempt = attempt_find(&shim->attempts, request->id);

        if (attempt)
                attempt_set_checkpoint(attempt, request->note);
}

void containers_send_due_signals(Shim *shim, uint64_t now_awake) {
        for (Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next) {
                if (attempt->signal_at <= now_awake)
                        send_stop_signal(attempt);
                if (attempt->state == ATTEMPT_RUNNING && attempt->kill_at <= now_awake)
                        kill_container(shim, attempt);
                if (attempt->state == ATTEMPT_ENDING && attempt->drained_by <= now_awake) {
                        container_drained(shim, attempt);
                        copier_replace(&shim->copier);
                }
        }
}

uint64_t containers_next_deadline(const Shim *shim) {
        uint64_t deadline = USEC_INFINITY;

        for (const Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->state == ATTEMPT_RUNNING)
                        deadline = MIN(deadline, MIN(attempt->signal_at, attempt->kill_at));
                else if (attempt->state == ATTEMPT_ENDING)
                        deadline = MIN(deadline, attempt->drained_by);
        return deadline;
}

/* --- exit --------------------------------------------------------------------------------- */

void container_exited(Shim *shim, Attempt *attempt, int status) {
        attempt->finished_at = MAX(now_realtime_usec(), attempt->started_at);
        attempt->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        attempt->exit_code = attempt->signal ? 128 + attempt->signal : WEXITSTATUS(status);
        attempt->oom_killed =
                oom_killed(attempt->events_file, attempt->signal, attempt->oom_kills_before);
        attempt->signal_at = attempt->kill_at = USEC_INFINITY;
        attempt->state = ATTEMPT_ENDING;
        attempt->drained_by = now_awake_usec() + DRAIN_USEC_MAX;
        container_output_drain(attempt->output);
        /* A container without its own PID namespace does not end with its first process. */
        if (attempt->shares_pids)
                kill_container_cgroup(shim, attempt);
}

void container_drained(Shim *shim, Attempt *attempt) {
        if (attempt->state != ATTEMPT_ENDING)
                return;
        container_output_end(attempt->output);
        attempt->state = ATTEMPT_EXITED;
        send_attempt_event(shim, attempt, SHIM_EVENT_EXITED);
}

/* --- delete ------------------------------------------------------------------------------- */

/* In a task. Continues after a failure, to remove as much as possible. */
static int delete_container_main(void *userdata, Error *reterr) {
        ContainerJob *job = userdata;
        int r = undo_start_main(job, reterr);

        strv_foreach(directory, job->directories) {
                int q = mounts_undo(*directory);

                if (q >= 0)
                        q = remove_tree_at(AT_FDCWD, *directory);
                if (q < 0 && r >= 0)
                        r = error_setf(reterr, -q, "cannot remove '%s': %s", *directory,
                                       strerror(-q));
        }
        return r;
}

static void on_container_deleted(const TaskResult *result, void *userdata) {
        cleanup_with(container_job_freep) ContainerJob *job = userdata;
        Attempt *attempt = attempt_find(&job->shim->attempts, job->id);

        DIE_AT("container.deleted");
        if (!task_succeeded(result))
                log_warning("Container '%.12s': %s", job->id, task_explanation(result));
        if (!attempt) {
                agent_connection_send(
                        &job->shim->connection,
                        &(ShimEvent){ .type = SHIM_EVENT_DELETED, .id = job->id, .name = "" });
                return;
        }
        attempt_set_deleted(attempt);
        send_attempt_event(job->shim, attempt, SHIM_EVENT_DELETED);
}

static int start_container_delete(Shim *shim, Attempt *attempt, const StringList *directories) {
        cleanup_with(container_job_freep) ContainerJob *job = NULL;
        int r = container_job_new(shim, attempt, &job);

        if (r < 0)
                return r;
        for (size_t i = 0; i < directories->n; i++) {
                r = strv_append(&job->directories, directories->items[i]);
                if (r < 0)
                        return r;
        }
        attempt->deleting = true;
        container_job_start(TAKE_PTR(job), delete_container_main, on_container_deleted,
                            USEC_INFINITY);
        return 0;
}

void container_delete(Shim *shim, const ShimRequest *request) {
        Attempt *attempt = attempt_find(&shim->attempts, request->id);
        Attempt forgotten = { .id = (char *) (uintptr_t) request->id };
        int r;

        if (attempt && attempt->deleting)
                return;
        if (attempt && (attempt->state == ATTEMPT_RUNNING || attempt->state == ATTEMPT_STARTING ||
                        attempt->state == ATTEMPT_ENDING)) {
                send_container_error(shim, request->id, "A running container cannot be deleted");
                return;
        }
        r = start_container_delete(shim, attempt ? attempt : &forgotten, &request->directories);
        if (r < 0)
                send_container_error(shim, request->id, strerror(-r));
}

bool containers_tear_down(Shim *shim) {
        bool nothing_left = true;

        for (Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next) {
                if (attempt->deleted || attempt->state == ATTEMPT_FAILED)
                        continue;
                nothing_left = false;
                if (attempt->state == ATTEMPT_RUNNING && attempt->stop_signal != SIGKILL) {
                        attempt->stop_signal = SIGKILL;
                        kill_container(shim, attempt);
                } else if (attempt->state == ATTEMPT_EXITED && !attempt->deleting)
                        (void) start_container_delete(shim, attempt, &(StringList){ 0 });
        }
        return nothing_left && !shim->tasks.first;
}

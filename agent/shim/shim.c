/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/shim.h"

#include "agent/shim/container-exec.h"
#include "agent/shim/container.h"
#include "agent/shim/live-devices.h"
#include "agent/shim/mounts.h"
#include "agent/shim/pid-namespace.h"
#include "agent/shim/sandbox-state.h"
#include "agent/shim/shim-session.h"
#include "agent/shim/sysctls.h"
#include "agent/shim/user-namespace.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory-trim.h"
#include "common/process-usage.h"
#include "common/text.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* Open descriptors of the containers, which the shim counts because the agent may not have the
 * privilege to inspect other processes. */

/* <container>/memory.events -> <container>/cgroup.procs */
static char *procs_file_of_attempt(const Attempt *attempt) {
        const char *name = strrchr(attempt->events_file, '/');

        return name ? text_format("%.*s/cgroup.procs", (int) (name - attempt->events_file),
                                  attempt->events_file)
                    : NULL;
}

static void report_descriptors(Shim *shim, const Attempt *attempt) {
        cleanup_free char *procs_file = procs_file_of_attempt(attempt);
        ProcessUsage usage;

        if (!procs_file || process_usage_of_cgroup(procs_file, attempt->pid, &usage) < 0)
                return;
        agent_connection_send(&shim->connection,
                              &(ShimEvent){ .type = SHIM_EVENT_USAGE,
                                            .id = attempt->id,
                                            .n_descriptors = usage.n_descriptors,
                                            .n_sockets = usage.n_sockets,
                                            .open_files_max = usage.open_files_max });
}

/* Sends an event for each running container, and one without an ID that ends the list. This needs
 * no task, because the number of examined descriptors is limited (common/process-usage.h). */
static void containers_report_usage(Shim *shim) {
        for (const Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->state == ATTEMPT_RUNNING)
                        report_descriptors(shim, attempt);
        agent_connection_send(&shim->connection, &(ShimEvent){ .type = SHIM_EVENT_USAGE });
}

enum {
        /* Time limit for a runtime call that is in progress when the pod is terminated. */
        TEARDOWN_RUNTIME_USEC = 10 * 1000 * 1000,
};

typedef struct SetupJob {
        Shim *shim;
        char *fstab;
        char *hostname; /* or NULL */
} SetupJob;

static void setup_job_free(SetupJob *job) {
        free(job->fstab);
        free(job->hostname);
        free(job);
}

/* In a task. An interrupted setup may have left mounts. */
static int sandbox_setup_main(void *userdata, Error *reterr) {
        const SetupJob *job = userdata;
        int r = mounts_check_private(job->shim->pod_dir, reterr);

        FAIL_AT("shim.set-up");
        if (r < 0)
                return r;
        r = mounts_undo(job->shim->pod_dir);
        if (r < 0)
                return r;
        if (job->shim->host.users_fd >= 0)
                r = user_namespace_bind(job->shim->pod_dir, job->shim->host.users_fd, reterr);
        if (r < 0)
                return r;
        r = mounts_apply(job->fstab, job->shim->pod_dir, job->shim->host.network_fd, reterr);
        if (r < 0)
                return r;
        /* Never changes the node's host name: a pod without a separate UTS namespace uses that one.
         */
        if (job->hostname && job->shim->host.uts_fd >= 0 &&
            sethostname(job->hostname, strlen(job->hostname)) < 0)
                return error_setf(reterr, errno, "cannot set the host name '%s': %s", job->hostname,
                                  strerror(errno));
        r = sysctls_apply(job->shim->pod_dir, reterr);
        if (r < 0)
                return r;
        if (job->shim->pause_pid > 0)
                return pid_namespace_bind(job->shim->pod_dir, job->shim->pause_pid, reterr);
        return 0;
}

static void on_setup_task_done(const TaskResult *result, void *userdata) {
        SetupJob *job = userdata;
        Shim *shim = job->shim;

        DIE_AT("shim.is-set-up");
        setup_job_free(job);
        shim->setting_up = false;
        shim->ready = task_succeeded(result);
        agent_connection_send(
                &shim->connection,
                &(ShimEvent){ .type = shim->ready ? SHIM_EVENT_READY : SHIM_EVENT_SETUP_FAILED,
                              .message = shim->ready ? NULL : task_explanation(result) });
}

static int start_setup_task(Shim *shim, const ShimRequest *request) {
        SetupJob *job = calloc(1, sizeof(*job));
        TaskSpec spec = { .main = sandbox_setup_main,
                          .done = on_setup_task_done,
                          .userdata = job,
                          .deadline = USEC_INFINITY };
        int r = shim->pause_pid > 0
                        ? 0
                        : pid_namespace_start(shim->pod_dir, shim->host.users_fd, &shim->pause_pid);

        if (r < 0) {
                free(job);
                return r;
        }
        r = -ENOMEM;
        if (job) {
                job->shim = shim;
                job->fstab = strdup(request->fstab);
                job->hostname = request->hostname ? strdup(request->hostname) : NULL;
                if (job->fstab && (job->hostname || !request->hostname))
                        r = task_start(&shim->tasks, &spec);
                if (r < 0)
                        setup_job_free(job);
        }
        return r;
}

static void handle_setup_request(Shim *shim, const ShimRequest *request) {
        int r;

        shim->log_limits = (LogLimits){ request->log_max_size, request->log_max_files };
        copier_set_log_limit(&shim->copier, request->log_max_size);
        for (Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->output)
                        container_output_set_limits(attempt->output, shim->log_limits);
        if (shim->setting_up)
                return;
        if (shim->ready) {
                agent_connection_send(&shim->connection, &(ShimEvent){ .type = SHIM_EVENT_READY });
                return;
        }
        r = start_setup_task(shim, request);
        if (r < 0)
                agent_connection_send(
                        &shim->connection,
                        &(ShimEvent){ .type = SHIM_EVENT_SETUP_FAILED, .message = strerror(-r) });
        else
                shim->setting_up = true;
}

static void start_teardown(Shim *shim) {
        if (shim->tearing_down)
                return;
        shim->tearing_down = true;
        programs_drop_waiting(&shim->programs);
        tasks_limit_deadline(&shim->tasks, now_awake_usec() + TEARDOWN_RUNTIME_USEC);
}

static void on_agent_request(AgentConnection *connection, const ShimRequest *request) {
        Shim *shim = container_of(connection, Shim, connection);

        switch (request->type) {
        case SHIM_REQUEST_HELLO:
                break; /* there is only one version so far */
        case SHIM_REQUEST_SETUP:
                handle_setup_request(shim, request);
                break;
        case SHIM_REQUEST_RUN:
                container_run(shim, request);
                break;
        case SHIM_REQUEST_STOP:
                container_schedule_stop(shim, request);
                break;
        case SHIM_REQUEST_DELETE:
                container_delete(shim, request);
                break;
        case SHIM_REQUEST_TEARDOWN:
                start_teardown(shim);
                break;
        case SHIM_REQUEST_EXEC:
                program_run(shim, request);
                break;
        case SHIM_REQUEST_SESSION:
        case SHIM_REQUEST_ATTACH:
                session_begin(shim, request, TAKE_FD(connection->received_fd));
                break;
        case SHIM_REQUEST_EXEC_IN:
                program_run(shim, request);
                break;
        case SHIM_REQUEST_NOTE:
                container_set_checkpoint(shim, request);
                break;
        case SHIM_REQUEST_DEVICES:
                live_devices_set(shim, request);
                break;
        case SHIM_REQUEST_USAGE:
                containers_report_usage(shim);
                break;
        case N_SHIM_REQUEST_TYPES:
                break;
        }
}

static void on_agent_connected(AgentConnection *connection) {
        Shim *shim = container_of(connection, Shim, connection);
        /* The agent does not have the privilege to open the shim's namespaces. */
        cleanup_close int network_fd = shim->options->host_network
                                               ? -EBADF
                                               : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

        agent_connection_greet(connection, network_fd);
        for (const Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next) {
                ShimEvent event = attempt_last_event(attempt);

                agent_connection_send(connection, &event);
        }
        agent_connection_send(connection,
                              &(ShimEvent){ .type = SHIM_EVENT_SYNCED, .ready = shim->ready });
}

/* A process of the runtime is about to become the shim's child. */
static bool is_runtime_process_expected(const Shim *shim) {
        if (programs_are_starting(&shim->programs))
                return true;
        for (const Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->state == ATTEMPT_STARTING)
                        return true;
        return false;
}

static void reap_shim_children(Shim *shim) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                Attempt *attempt;

                if (task_reap(&shim->tasks, pid, status) || program_reap(shim, pid, status) ||
                    copier_reap(&shim->copier, pid))
                        continue;
                attempt = attempt_find_pid(&shim->attempts, pid);
                if (pid == shim->pause_pid) {
                        /* Without this process, no container can start in the PID namespace. */
                        shim->pause_pid = 0;
                        start_teardown(shim);
                } else if (attempt)
                        container_exited(shim, attempt, status);
                else if (is_runtime_process_expected(shim))
                        shim_add_unclaimed_exit(shim, pid, status);
        }
        if (!is_runtime_process_expected(shim))
                shim_drop_unclaimed_exits(shim);
}

static void on_shim_signal(EpollSource *source, uint32_t events) {
        Shim *shim = container_of(source, Shim, signals);
        struct signalfd_siginfo info;

        if (read(source->fd, &info, sizeof(info)) != sizeof(info))
                return;
        if (info.ssi_signo == SIGTERM)
                start_teardown(shim);
        else
                reap_shim_children(shim);
}

static int watch_shim_signals(Shim *shim) {
        sigset_t signals;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGCHLD);
        (void) sigaddset(&signals, SIGTERM);
        if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0)
                return -errno;
        shim->signals.fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (shim->signals.fd < 0)
                return -errno;
        shim->signals.on_ready = on_shim_signal;
        return epoll_source_add(shim->epoll_fd, &shim->signals, EPOLLIN);
}

/* ---- the log copier ---- */

static void on_copier_started(Copier *copier) {
        Shim *shim = container_of(copier, Shim, copier);

        for (Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->output)
                        container_output_send_all(attempt->output);
        programs_send_captures(&shim->programs);
}

static void on_copier_message(Copier *copier, const CopierMessage *message, const char *data,
                              size_t length) {
        Shim *shim = container_of(copier, Shim, copier);
        Attempt *attempt = attempt_find_output(&shim->attempts, message->id);

        if (message->type == COPIER_CAPTURED)
                program_take_captured(shim, message->id, data, length);
        else if (message->type == COPIER_DRAINED && attempt)
                container_drained(shim, attempt);
        else if (message->type == COPIER_DROPPED && attempt)
                container_output_take_dropped(attempt->output, message->attachment);
}

static void on_copier_request(Copier *copier, const CopierMessage *request, CopierMessage *answer) {
        const Shim *shim = container_of(copier, Shim, copier);
        const Attempt *attempt = attempt_find_output(&shim->attempts, request->id);

        if (attempt)
                container_output_take_request(attempt->output, request, answer);
}

static const CopierOperations copier_operations = {
        .on_started = on_copier_started,
        .on_message = on_copier_message,
        .on_request = on_copier_request,
};

static int shim_init(Shim *shim, const ShimOptions *options, int listen_fd) {
        int r;

        *shim = (Shim){ .options = options,
                        .epoll_fd = -EBADF,
                        .signals = EPOLL_SOURCE_NULL,
                        .copier = COPIER_NULL,
                        .host = HOST_NAMESPACES_NULL };
        shim->connection.listener = shim->connection.peer = EPOLL_SOURCE_NULL;
        shim->connection.received_fd = -EBADF;
        shim->connection.on_request = on_agent_request;
        shim->connection.on_connected = on_agent_connected;
        shim->pod_dir = text_format("%s/pods/%s", options->run_dir, options->uid);
        if (!shim->pod_dir)
                return -ENOMEM;
        shim->runtime_root = path_join(shim->pod_dir, "runtime");
        shim->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (!shim->runtime_root)
                return -ENOMEM;
        if (shim->epoll_fd < 0)
                return -errno;
        r = watch_shim_signals(shim);
        if (r < 0)
                return r;
        r = agent_connection_init(&shim->connection, shim->epoll_fd, listen_fd,
                                  &(ShimEvent){ .type = SHIM_EVENT_HELLO,
                                                .version = SHIM_PROTOCOL_VERSION,
                                                .pid = getpid() });
        if (r < 0)
                return r;
        /* The copier is forked before any data of the pod is in the shim's memory, because it
         * inherits that memory. */
        return copier_init(&shim->copier, shim->epoll_fd, &copier_operations);
}

static void shim_done(Shim *shim) {
        pid_namespace_end(shim->pause_pid);
        attempts_free(&shim->attempts);
        programs_free(&shim->programs);
        live_devices_done(shim);
        copier_done(&shim->copier);
        close_fd(shim->host.network_fd);
        close_fd(shim->host.uts_fd);
        close_fd(shim->host.users_fd);
        agent_connection_done(&shim->connection);
        close_fd(shim->signals.fd);
        close_fd(shim->epoll_fd);
        free(shim->unclaimed_exits);
        free(shim->runtime_root);
        free(shim->pod_dir);
}

static int run_shim_loop_once(Shim *shim) {
        uint64_t deadline = MIN(containers_next_deadline(shim), tasks_next_deadline(&shim->tasks));
        int r;

        deadline = MIN(deadline, programs_next_deadline(&shim->programs));
        deadline = MIN(deadline, shim->connection.accept_at);
        deadline = MIN(deadline, shim->copier.start_at);
        r = epoll_loop_run_once(shim->epoll_fd, deadline);
        if (deadline != USEC_INFINITY) {
                uint64_t now = now_awake_usec();

                containers_send_due_signals(shim, now);
                tasks_expire(&shim->tasks, now);
                programs_kill_timed_out(&shim->programs, now);
                agent_connection_continue(&shim->connection, now);
                copier_continue(&shim->copier, now);
        }
        return r;
}

static int run_shim_loop(Shim *shim) {
        int r;

        while (!(shim->tearing_down && containers_tear_down(shim))) {
                r = run_shim_loop_once(shim);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* No agent may connect to a socket without a shim. */
static void remove_shim_socket(const Shim *shim) {
        cleanup_free char *path = path_join(shim->pod_dir, "shim.sock");

        if (path)
                (void) unlink(path);
}

int shim_main(const ShimOptions *options) {
        cleanup_error Error error = ERROR_NULL;
        int listen_fd = sandbox_process_take_socket(), r;
        HostNamespaces host = HOST_NAMESPACES_NULL;
        Shim shim;

        if (listen_fd < 0)
                return log_error_errno(listen_fd, "No socket on standard input");
        r = sandbox_process_isolate(options, &host, &error);
        if (r < 0) {
                log_error("Pod %s: %s", options->uid, error_message(&error, r));
                return r;
        }
        r = shim_init(&shim, options, listen_fd);
        shim.host = host;
        if (r >= 0) {
                memory_trim();
                r = run_shim_loop(&shim);
        }
        if (r < 0)
                (void) log_error_errno(r, "Pod %s: the shim cannot continue", options->uid);
        else
                remove_shim_socket(&shim);
        shim_done(&shim);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/shim.h"

#include "agent/shim/container.h"
#include "agent/shim/environment.h"
#include "agent/shim/mounts.h"
#include "agent/shim/pids.h"
#include "agent/shim/session.h"
#include "agent/shim/sysctls.h"
#include "agent/shim/users.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum {
        /* A runtime call that is under way when the pod is torn down gets this long to end. */
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

/* In a task. A setup that was interrupted may have left mounts. */
static int setup_main(void *userdata, Error *reterr) {
        const SetupJob *job = userdata;
        int r = mounts_check_private(job->shim->pod_dir, reterr);

        if (r >= 0)
                r = mounts_undo(job->shim->pod_dir);
        if (r >= 0 && job->shim->host.users_fd >= 0)
                r = users_bind(job->shim->pod_dir, job->shim->host.users_fd, reterr);
        if (r >= 0)
                r = mounts_apply(job->fstab, job->shim->pod_dir, reterr);
        /* Never the node's: without a UTS namespace of its own a pod has the node's name. */
        if (r >= 0 && job->hostname && job->shim->host.uts_fd >= 0 &&
            sethostname(job->hostname, strlen(job->hostname)) < 0)
                r = error_setf(reterr, errno, "cannot set the host name '%s': %s", job->hostname,
                               strerror(errno));
        if (r >= 0)
                r = sysctls_apply(job->shim->pod_dir, reterr);
        if (r >= 0 && job->shim->pause_pid > 0)
                r = pids_bind(job->shim->pod_dir, job->shim->pause_pid, reterr);
        return r;
}

static void setup_done(const TaskResult *result, void *userdata) {
        SetupJob *job = userdata;
        Shim *shim = job->shim;

        setup_job_free(job);
        shim->setting_up = false;
        shim->ready = task_succeeded(result);
        connection_send(&shim->connection,
                        &(Event){ .type = shim->ready ? EVENT_READY : EVENT_SETUP_FAILED,
                                  .message = shim->ready ? NULL : task_explanation(result) });
}

static int begin_setup(Shim *shim, const Request *request) {
        SetupJob *job = calloc(1, sizeof(*job));
        TaskSpec spec = {
                .main = setup_main, .done = setup_done, .userdata = job, .deadline = USEC_INFINITY
        };
        int r = shim->pause_pid > 0
                        ? 0
                        : pids_start(shim->pod_dir, shim->host.users_fd, &shim->pause_pid);

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

static void handle_setup(Shim *shim, const Request *request) {
        int r;

        shim->log_limits = (LogLimits){ request->log_max_size, request->log_max_files };
        for (Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->output)
                        output_set_limits(attempt->output, shim->log_limits);
        if (shim->setting_up)
                return;
        if (shim->ready) {
                connection_send(&shim->connection, &(Event){ .type = EVENT_READY });
                return;
        }
        r = begin_setup(shim, request);
        if (r < 0)
                connection_send(&shim->connection,
                                &(Event){ .type = EVENT_SETUP_FAILED, .message = strerror(-r) });
        else
                shim->setting_up = true;
}

static void tear_down(Shim *shim) {
        if (shim->tearing_down)
                return;
        shim->tearing_down = true;
        programs_drop_waiting(&shim->programs);
        tasks_limit(&shim->tasks, now_boottime_usec() + TEARDOWN_RUNTIME_USEC);
}

static void on_request(Connection *connection, const Request *request) {
        Shim *shim = container_of(connection, Shim, connection);

        switch (request->type) {
        case REQUEST_HELLO:
                break; /* one version so far */
        case REQUEST_SETUP:
                handle_setup(shim, request);
                break;
        case REQUEST_RUN:
                container_run(shim, request);
                break;
        case REQUEST_STOP:
                container_stop(shim, request);
                break;
        case REQUEST_DELETE:
                container_delete(shim, request);
                break;
        case REQUEST_TEARDOWN:
                tear_down(shim);
                break;
        case REQUEST_EXEC:
                program_run(shim, request);
                break;
        case REQUEST_SESSION:
                session_begin(shim, request, TAKE_FD(connection->received_fd));
                break;
        case REQUEST_EXEC_IN:
                program_run(shim, request);
                break;
        case REQUEST_NOTE:
                container_set_note(shim, request);
                break;
        case N_REQUEST_TYPES:
                break;
        }
}

static void on_connected(Connection *connection) {
        Shim *shim = container_of(connection, Shim, connection);
        /* The agent may not look at us: it has less privileges. */
        cleanup_close int network_fd = shim->options->host_network
                                               ? -EBADF
                                               : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

        connection_greet(
                connection,
                &(Event){ .type = EVENT_HELLO, .version = PROTOCOL_VERSION, .pid = getpid() },
                network_fd);
        for (const Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next) {
                Event event = attempt_replay(attempt);

                connection_send(connection, &event);
        }
        connection_send(connection, &(Event){ .type = EVENT_SYNCED, .ready = shim->ready });
}

Runtime shim_runtime(const Shim *shim) {
        return (Runtime){
                .program = shim->options->runtime,
                .root = shim->runtime_root,
                .has_systemd_cgroup = shim->options->has_systemd_cgroup,
                .timeout_usec = shim->options->runtime_timeout_usec,
        };
}

int shim_claim(Shim *shim, pid_t pid, int *ret_status) {
        siginfo_t info;

        if (waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) >= 0)
                return 1;
        for (size_t i = shim->n_strays; i > 0; i--)
                if (shim->strays[i - 1].pid == pid) {
                        *ret_status = shim->strays[i - 1].status;
                        return 0;
                }
        return -ECHILD;
}

/* A process of the runtime's is on its way that will be ours. */
static bool is_starting(const Shim *shim) {
        if (programs_are_starting(&shim->programs))
                return true;
        for (const Attempt *attempt = shim->attempts.first; attempt; attempt = attempt->next)
                if (attempt->state == ATTEMPT_STARTING)
                        return true;
        return false;
}

/* A container may end before the runtime call that started it: until that returns, every process
 * that we do not know may be one. The oldest are forgotten first. */
static void remember_stray(Shim *shim, pid_t pid, int status) {
        if (!shim->strays)
                shim->strays = calloc(STRAYS_MAX, sizeof(Stray));
        if (!shim->strays)
                return;
        if (shim->n_strays == STRAYS_MAX)
                memmove(shim->strays, shim->strays + 1, --shim->n_strays * sizeof(Stray));
        shim->strays[shim->n_strays++] = (Stray){ pid, status };
}

static void reap(Shim *shim) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                Attempt *attempt;

                if (task_reap(&shim->tasks, pid, status) || program_reap(shim, pid, status))
                        continue;
                attempt = attempt_find_pid(&shim->attempts, pid);
                if (pid == shim->pause_pid) {
                        /* No container can start in a namespace without it. */
                        shim->pause_pid = 0;
                        tear_down(shim);
                } else if (attempt)
                        container_exited(shim, attempt, status);
                else if (is_starting(shim))
                        remember_stray(shim, pid, status);
        }
        if (shim->strays && !is_starting(shim)) {
                free(TAKE_PTR(shim->strays));
                shim->n_strays = 0;
        }
}

static void on_signal(Source *source, uint32_t events) {
        Shim *shim = container_of(source, Shim, signals);
        struct signalfd_siginfo info;

        if (read(source->fd, &info, sizeof(info)) != sizeof(info))
                return;
        if (info.ssi_signo == SIGTERM)
                tear_down(shim);
        else
                reap(shim);
}

static int watch_signals(Shim *shim) {
        sigset_t signals;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGCHLD);
        (void) sigaddset(&signals, SIGTERM);
        if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0)
                return -errno;
        shim->signals.fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (shim->signals.fd < 0)
                return -errno;
        shim->signals.on_ready = on_signal;
        return source_add(shim->epoll_fd, &shim->signals, EPOLLIN);
}

static int shim_init(Shim *shim, const ShimOptions *options, int listen_fd) {
        int r;

        *shim = (Shim){ .options = options,
                        .epoll_fd = -EBADF,
                        .signals = SOURCE_NULL,
                        .host = HOST_NAMESPACES_NULL };
        shim->connection.listener = shim->connection.peer = SOURCE_NULL;
        shim->connection.received_fd = -EBADF;
        shim->connection.on_request = on_request;
        shim->connection.on_connected = on_connected;
        if (asprintf(&shim->pod_dir, "%s/pods/%s", options->run_dir, options->uid) < 0) {
                shim->pod_dir = NULL;
                return -ENOMEM;
        }
        shim->runtime_root = path_join(shim->pod_dir, "runtime");
        shim->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (!shim->runtime_root)
                return -ENOMEM;
        if (shim->epoll_fd < 0)
                return -errno;
        r = watch_signals(shim);
        return r < 0 ? r : connection_init(&shim->connection, shim->epoll_fd, listen_fd);
}

static void shim_done(Shim *shim) {
        pids_end(shim->pause_pid);
        attempts_free(&shim->attempts);
        programs_free(&shim->programs);
        close_fd(shim->host.network_fd);
        close_fd(shim->host.uts_fd);
        close_fd(shim->host.users_fd);
        connection_done(&shim->connection);
        close_fd(shim->signals.fd);
        close_fd(shim->epoll_fd);
        free(shim->strays);
        free(shim->runtime_root);
        free(shim->pod_dir);
}

static int turn(Shim *shim) {
        uint64_t deadline = MIN(containers_next_deadline(shim), tasks_next_deadline(&shim->tasks));
        int r;

        deadline = MIN(deadline, programs_next_deadline(&shim->programs));
        r = loop_turn(shim->epoll_fd, deadline);
        if (deadline != USEC_INFINITY) {
                uint64_t now = now_boottime_usec();

                containers_expire(shim, now);
                tasks_expire(&shim->tasks, now);
                programs_expire(&shim->programs, now);
        }
        return r;
}

static int serve(Shim *shim) {
        int r = 0;

        while (r >= 0 && !(shim->tearing_down && containers_tear_down(shim)))
                r = turn(shim);
        return r;
}

/* Nobody shall knock where nobody is. */
static void remove_socket(const Shim *shim) {
        cleanup_free char *path = path_join(shim->pod_dir, "shim.sock");

        if (path)
                (void) unlink(path);
}

int shim_main(const ShimOptions *options) {
        cleanup_error Error error = ERROR_NULL;
        int listen_fd = environment_take_socket(), r;
        HostNamespaces host = HOST_NAMESPACES_NULL;
        Shim shim;

        if (listen_fd < 0)
                return log_error_errno(listen_fd, "No socket on standard input");
        r = environment_enter(options, &host, &error);
        if (r < 0) {
                log_error("Pod %s: %s", options->uid, error_message(&error, r));
                return r;
        }
        r = shim_init(&shim, options, listen_fd);
        shim.host = host;
        if (r >= 0) {
                (void) malloc_trim(0);
                r = serve(&shim);
        }
        if (r < 0)
                (void) log_error_errno(r, "Pod %s: the shim cannot go on", options->uid);
        else
                remove_socket(&shim);
        shim_done(&shim);
        return r;
}

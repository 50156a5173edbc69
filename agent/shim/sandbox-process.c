/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/sandbox-process.h"

#include "agent/shim/user-namespace.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/text.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* NOTIFY_SOCKET and similar variables are for the agent, not for a shim and its runtime: runc, for
 * example, would wait for the container's READY=1. */
static const char *const foreign_variables[] = {
        "NOTIFY_SOCKET", "LISTEN_FDS",    "LISTEN_PID", "LISTEN_FDNAMES",   "WATCHDOG_PID",
        "WATCHDOG_USEC", "INVOCATION_ID", "MAINPID",    "SYSTEMD_EXEC_PID",
};

int sandbox_process_take_socket(void) {
        int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), null_fd;

        if (fd < 0)
                return -errno;
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0)
                return -errno;
        if (fd != 3 && dup3(fd, 3, O_CLOEXEC) < 0)
                return -errno;
        if (close_range(4, UINT_MAX, 0) < 0)
                return -errno;
        return 3;
}

static void reset_inheritance(void) {
        for (size_t i = 0; i < N_ELEMENTS(foreign_variables); i++)
                (void) unsetenv(foreign_variables[i]);
        (void) umask(0022);
        (void) setpriority(PRIO_PROCESS, 0, 0);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGHUP, SIG_IGN);
        (void) signal(SIGINT, SIG_IGN);
        /* A node may have fifty idle shims, so they keep no memory in reserve. */
        (void) mallopt(M_ARENA_MAX, 1);
        (void) mallopt(M_TRIM_THRESHOLD, 8 * 1024);
        (void) mallopt(M_TOP_PAD, 4 * 1024);
        (void) mallopt(M_MMAP_THRESHOLD, 32 * 1024);
}

static void enter_cgroup(const char *path) {
        cleanup_error Error error = ERROR_NULL;
        int r = cgroup_create(path, &error);

        if (r >= 0)
                r = cgroup_enter(path, &error);
        /* The shim and the runtime have values of Secrets in memory, so they get no swap. Cgroup v1
         * limits memory and swap together. */
        if (r >= 0 && cgroup_version() == 2)
                (void) cgroup_write(path, "memory", "memory.swap.max", "0", NULL);
        if (r < 0)
                log_warning("Cannot enter the shim's cgroup; staying in the agent's: %s",
                            error_message(&error, r));
}

static int keep_host_namespaces(HostNamespaces *ret) {
        int network_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), uts_fd;

        if (network_fd < 0)
                return -errno;
        uts_fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
        if (uts_fd < 0) {
                int r = -errno;
                close_fd(network_fd);
                return r;
        }
        ret->network_fd = network_fd;
        ret->uts_fd = uts_fd;
        return 0;
}

/* The loopback interface of a new network namespace is down. */
static int raise_loopback(void) {
        struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
        cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/* If the pod has a user namespace, its other namespaces belong to that user namespace. */
static int enter_pod_user_namespace(const ShimOptions *options, int *namespaces, int *ret_fd,
                                    Error *reterr) {
        cleanup_free char *pod_dir = NULL;
        unsigned first_id = 0;
        int r;

        pod_dir = text_format("%s/pods/%s", options->run_dir, options->uid);
        if (!pod_dir)
                return -ENOMEM;
        r = user_namespace_read(pod_dir, &first_id);
        if (r < 0)
                return error_setf(reterr, -r, "cannot read the user IDs of the pod: %s",
                                  strerror(-r));
        if (r == 0)
                return 0;
        r = user_namespace_enter(first_id, *namespaces & ~CLONE_NEWNS, ret_fd, reterr);
        *namespaces = CLONE_NEWNS;
        return r;
}

int sandbox_process_isolate(const ShimOptions *options, HostNamespaces *ret_host, Error *reterr) {
        int namespaces = CLONE_NEWNS, r;

        reset_inheritance();
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return error_setf(reterr, errno, "cannot become a subreaper: %s", strerror(errno));
        /* This may be refused if the agent does not have the privilege. */
        (void) write_value_at(AT_FDCWD, "/proc/self/oom_score_adj", "-998");
        if (options->cgroup)
                enter_cgroup(options->cgroup);
        if (!options->host_network) {
                r = keep_host_namespaces(ret_host);
                if (r < 0)
                        return error_setf(reterr, -r, "cannot keep the node's namespaces: %s",
                                          strerror(-r));
                namespaces |= CLONE_NEWNET | CLONE_NEWUTS;
        }
        if (!options->host_ipc)
                namespaces |= CLONE_NEWIPC;
        r = enter_pod_user_namespace(options, &namespaces, &ret_host->users_fd, reterr);
        if (r < 0)
                return r;
        /* Mounts keep their peers: a hostPath volume sees later mounts of the host. The shim's own
         * mounts are below the run directory, which is a private mount. */
        if (unshare(namespaces) < 0)
                return error_setf(reterr, errno, "cannot make the pod's namespaces: %s",
                                  strerror(errno));
        r = options->host_network ? 0 : raise_loopback();
        if (r < 0)
                return error_setf(reterr, -r, "cannot bring up the pod's loopback interface: %s",
                                  strerror(-r));
        return chdir("/") < 0 ? -errno : 0;
}

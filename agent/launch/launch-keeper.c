/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-keeper.h"

#include "agent/launch/launch-environment.h"
#include "agent/launch/launch-request.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/macros.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>

/* Only these programs are started; the shim only for connections to ports. */
static bool may_launch(const Launch *launch) {
        static const char *const programs[] = { "mainstay-image", "mainstay-api",
                                                "mainstay-plugins" };
        const char *program = launch->request.program;

        for (size_t i = 0; i < N_ELEMENTS(programs); i++)
                if (streq(program, programs[i]))
                        return true;
        return streq(program, "mainstay-shim") && launch->request.n_arguments > 1 &&
               streq(launch->argv[1], "connect");
}

/* The program may write only to the paths to which the agent may write, because the settings of the
 * agent's unit apply. */
static int enter_mounts_of_agent(const Launch *launch) {
        if (setns(launch->fds[LAUNCH_FD_MOUNTS], CLONE_NEWNS) < 0 || chdir("/") < 0)
                return -errno;
        return 0;
}

/* Does not return if the program has started. */
static int execute_launched(const Launch *launch, const char *path, pid_t keeper) {
        cleanup_free char **environment = launch_environment(environ, launch->environment);
        sigset_t none;

        if (!environment)
                return -ENOMEM;

        /* Takes effect before the program runs. A program that changes its user resets it, but
         * exits when its socket is closed. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != keeper)
                return -ECHILD;
        for (int i = 0; i < 3; i++)
                if (dup2(launch->fds[LAUNCH_FD_STREAMS + i], i) < 0)
                        return -errno;
        (void) sigemptyset(&none);
        if (signal(SIGPIPE, SIG_DFL) == SIG_ERR || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                return -errno;
        (void) execve(path, launch->argv, environment);
        return -errno;
}

static int spawn_launched(const Launch *launch, const char *path, pid_t *ret_pid) {
        pid_t keeper = getpid();

        *ret_pid = fork();
        if (*ret_pid != 0)
                return *ret_pid < 0 ? -errno : 0;
        (void) log_error_errno(execute_launched(launch, path, keeper), "Cannot start '%s'", path);
        _exit(EX_TEMPFAIL);
}

static int start_launched(const Launch *launch, const char *directory, pid_t *ret_pid) {
        cleanup_free char *path = path_join(directory, launch->request.program);
        int r;

        if (!path)
                return -ENOMEM;
        if (!may_launch(launch))
                return -EPERM;
        r = enter_mounts_of_agent(launch);
        return r < 0 ? r : spawn_launched(launch, path, ret_pid);
}

/* False if the connection was closed first: the agent has killed its client, or has ended. */
static bool wait_for_exit(pid_t pid, int connection_fd) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        struct pollfd ends[] = { { .fd = pidfd, .events = POLLIN },
                                 { .fd = connection_fd, .events = POLLIN } };

        while (poll(ends, N_ELEMENTS(ends), -1) < 0 && errno == EINTR)
                ;
        return ends[0].revents;
}

static int keep_launched(pid_t pid, int connection_fd) {
        siginfo_t exit = { 0 };
        LaunchResult result;

        if (!wait_for_exit(pid, connection_fd))
                (void) kill(pid, SIGKILL); /* not reaped yet, so the PID cannot have been reused */
        if (waitid(P_PID, (id_t) pid, &exit, WEXITED) < 0)
                return -errno;
        result = (LaunchResult){ .code = exit.si_code, .status = exit.si_status };
        (void) send(connection_fd, &result, sizeof(result), MSG_NOSIGNAL | MSG_DONTWAIT);
        return 0;
}

int launch_keeper(int connection_fd, const char *directory, pid_t server) {
        cleanup_with(launch_done) Launch launch = LAUNCH_NULL;
        pid_t pid = 0;
        int r;

        /* The programs end with the server, as they would with the agent. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != server)
                return EXIT_FAILURE;
        (void) prctl(PR_SET_NAME, "launch-keeper");
        r = launch_request_receive(connection_fd, &launch);
        if (r >= 0)
                r = start_launched(&launch, directory, &pid);
        if (r < 0) {
                log_error("Cannot start '%s': %s", launch.request.program, strerror(-r));
                return EXIT_FAILURE;
        }
        return keep_launched(pid, connection_fd) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

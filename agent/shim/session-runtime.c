/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/session-runtime.h"

#include "agent/shim/runtime.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <signal.h>

static int append_terminal(char ***argv, const char *terminal) {
        int r = strv_append(argv, "--tty");

        if (r < 0)
                return r;
        r = strv_appendf(argv, "--console-socket=%s", terminal);
        if (r < 0)
                return r;
        /* The container's environment has no TERM; this is the default of the kubelet's
         * runtimes. */
        return strv_append(argv, "--env=TERM=xterm");
}

/* User, environment, directory and capabilities are the container's: the runtime reads its
 * bundle. */
static int make_exec_arguments(const SessionSpec *spec, const char *terminal, char ***ret) {
        cleanup_strv char **argv = NULL;
        int r = strv_append(&argv, spec->runtime.program);

        if (r < 0)
                return r;
        r = strv_appendf(&argv, "--root=%s", spec->runtime.root);
        if (r < 0)
                return r;
        r = strv_appendf(&argv, "--log=%s/runtime.log", spec->directory);
        if (r < 0)
                return r;
        r = strv_append(&argv, "--log-format=json");
        if (r < 0)
                return r;
        r = strv_append(&argv, "exec");
        if (r < 0)
                return r;
        r = strv_append(&argv, "--detach");
        if (r < 0)
                return r;
        r = strv_appendf(&argv, "--pid-file=%s/pid", spec->directory);
        if (r < 0)
                return r;
        if (terminal)
                r = append_terminal(&argv, terminal);
        if (r < 0)
                return r;
        r = strv_append(&argv, spec->container);
        if (r < 0)
                return r;
        r = strv_extend(&argv, spec->argv);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(argv);
        return 0;
}

static _Noreturn void become_runtime(const SessionSpec *spec, char **argv, const int fds[3]) {
        sigset_t none;
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        for (int i = 0; i < 3; i++)
                if (dup2(fds[i] >= 0 ? fds[i] : null_fd, i) < 0)
                        _exit(EXIT_FAILURE);
        runtime_log_missing(&spec->runtime, spec->directory, -runtime_execute(argv));
        _exit(127);
}

int session_start_runtime(const SessionSpec *spec, const char *terminal, const int fds[3],
                          pid_t *ret_pid) {
        cleanup_strv char **argv = NULL;
        int r = make_exec_arguments(spec, terminal, &argv);
        pid_t pid;

        if (r < 0)
                return r;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                become_runtime(spec, argv, fds);
        *ret_pid = pid;
        return 0;
}

int session_read_pid(const SessionSpec *spec, pid_t *ret) {
        cleanup_free char *path = path_join(spec->directory, "pid");

        return path ? runtime_read_pid(path, ret) : -ENOMEM;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugin-host/plugin-host-confine.h"

#include "common/cleanup.h"
#include "common/privileges.h"
#include "common/seccomp-rules.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define OWN_USER "mainstay-plugins"
#define DATA_MAX (256 * MIB)

/* clang-format off */
static const char *const host_calls[] = {
        "accept4", "accept", "recv", "recvfrom", "recvmsg", "send", "sendto", "sendmsg", "read", "write", "writev",
        "close", "fcntl", "fcntl64", "fstat", "fstat64", "statx", "newfstatat", "poll", "ppoll", "ppoll_time64",
        "munmap", "mremap", "brk", "madvise", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn",
        "sigaltstack", "restart_syscall", "clock_gettime", "clock_gettime64", "gettimeofday", "time", "getrandom",
        "futex", "futex_time64", "getpid", "gettid", "getuid", "geteuid", "getrusage", "exit", "exit_group", "tgkill",
#if HAS_SANITIZER
        "open", "openat", "readlink", "readlinkat", "stat", "stat64", "prlimit64", "getrlimit", "sched_yield", "lseek",
        "prctl", "ioctl", "getppid", "clone", "wait4", "ptrace", "kill", "getcwd", "fork", "vfork", "set_tid_address",
        "arch_prctl", "getdents", "getdents64", "access", "process_vm_readv", "dup", "dup2", "pipe", "pipe2",
#endif
#if defined(__i386__)
        "socketcall",
#endif
};
/* clang-format on */

static int limit_calls(Error *reterr) {
        cleanup_with(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r;

        if (!filter)
                return -ENOMEM;
        r = seccomp_add_calls(filter, SCMP_ACT_ALLOW, host_calls, N_ELEMENTS(host_calls));
        if (r >= 0)
                r = seccomp_add_data_calls(filter);
        return seccomp_load_filter(filter, r, reterr);
}

int confine_plugin_host(Error *reterr) {
        static const struct rlimit data = { DATA_MAX, DATA_MAX };
        int r = privileges_leave_root(OWN_USER, reterr);

        if (r < 0)
                return r;
        r = privileges_keep_capabilities(0);
        if (r < 0)
                return error_setf(reterr, -r, "cannot drop privileges: %s", strerror(-r));
        if (!HAS_SANITIZER)
                (void) setrlimit(RLIMIT_DATA, &data);
        privileges_hide_memory();
        return limit_calls(reterr);
}

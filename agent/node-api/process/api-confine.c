/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/process/api-confine.h"

#include "common/cleanup.h"
#include "common/privileges.h"
#include "common/seccomp-rules.h"

#include <linux/net.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define DATA_MAX      (512 * MIB) /* as in its systemd unit */
#define ADDRESSES_MAX (2 * DATA_MAX)

enum {
        NOBODY = 65534
};

static int become_ids(const char *name, uid_t uid, gid_t gid, Error *reterr) {
        int r = privileges_set_ids(uid, gid);

        return r < 0 ? error_setf(reterr, -r, "cannot become the user '%s': %s", name, strerror(-r))
                     : 0;
}

static int become_api_user(const char *name, bool is_required, Error *reterr) {
        const struct passwd *user;

        if (geteuid() != 0)
                return 0;
        user = getpwnam(name);
        if (!user && is_required)
                return error_setf(reterr, ENOENT, "there is no user '%s' to run as", name);
        return user ? become_ids(name, user->pw_uid, user->pw_gid, reterr)
                    : become_ids("nobody", NOBODY, NOBODY, reterr);
}

static void limit_api_memory(void) {
        static const struct rlimit data = { DATA_MAX, DATA_MAX },
                                   addresses = { ADDRESSES_MAX, ADDRESSES_MAX };

        if (HAS_SANITIZER)
                return;
        (void) setrlimit(RLIMIT_DATA, &data);
        (void) setrlimit(RLIMIT_AS, &addresses);
}

static int drop_privileges(const char *user, bool is_required, Error *reterr) {
        int r = become_api_user(user, is_required, reterr);

        if (r < 0)
                return r;
        r = privileges_keep_capabilities(0);
        if (r < 0)
                return error_setf(reterr, -r, "cannot drop privileges: %s", strerror(-r));
        limit_api_memory();
        privileges_hide_memory();
        return 0;
}

int confine_api_process(const char *user, Error *reterr) {
        return drop_privileges(user, /* is_required= */ true, reterr);
}

/* Prevents other processes of the same user from tracing this process or reading its memory. */
int confine_signer_process(const char *user, Error *reterr) {
        int r = drop_privileges(user, /* is_required= */ false, reterr);

        if (r >= 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
                r = -errno;
        return r;
}

/* clang-format off */
static const char *const api_calls[] = {
        /* sockets and descriptors */
        "accept4", "accept", "connect", "getsockopt", "setsockopt", "getsockname", "getpeername", "shutdown",
        "recv", "recvfrom", "recvmsg", "send", "sendto", "sendmsg", "read", "readv", "write", "writev",
        "close", "fcntl", "fcntl64", "ioctl", "fstat", "fstat64", "statx", "newfstatat", "fstatat64", "lseek", "_llseek",
        /* the loop */
        "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2", "pipe2",
        "timerfd_create", "timerfd_settime", "timerfd_settime64", "signalfd4", "poll", "ppoll",
        "ppoll_time64",
        /* memory, time, signals */
        "munmap", "mremap", "brk", "madvise", "rt_sigaction", "rt_sigprocmask",
        "rt_sigreturn", "sigreturn", "sigaltstack", "restart_syscall", "clock_gettime", "clock_gettime64",
        "clock_nanosleep", "clock_nanosleep_time64", "gettimeofday", "time", "getrandom", "futex",
        "futex_time64", "sched_yield", "set_robust_list", "rseq", "uname", "sysinfo", "sched_getaffinity",
        /* this process */
        "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getuid32", "geteuid32",
        "getgid32", "getegid32", "exit", "exit_group", "kill", "tgkill", "getrusage", "prctl",
#if HAS_SANITIZER
        "open", "openat", "readlink", "readlinkat", "stat", "stat64", "prlimit64", "getrlimit", "ptrace",
        "clone", "wait4", "getcwd", "fork", "vfork", "set_tid_address", "arch_prctl", "execve", "dup2",
        "getdents", "getdents64", "access", "process_vm_readv", "dup", "pipe",
#endif
};
/* clang-format on */

/* The process receives its sockets from other processes. */
/* clang-format off */
static const char *const signer_calls[] = {
        "recvmsg", "recv", "recvfrom", "sendmsg", "send", "sendto", "poll", "ppoll", "ppoll_time64", "read", "write",
        "writev", "close", "munmap", "mremap", "brk", "madvise", "rt_sigaction",
        "rt_sigprocmask", "rt_sigreturn", "sigreturn", "sigaltstack", "restart_syscall", "clock_gettime",
        "clock_gettime64", "gettimeofday", "time", "getrandom", "futex", "futex_time64", "getpid", "gettid", "getuid",
        "geteuid", "getrusage", "fstat", "fstat64", "statx", "newfstatat", "exit", "exit_group", "tgkill",
#if HAS_SANITIZER
        "open", "openat", "readlink", "readlinkat", "stat", "stat64", "prlimit64", "getrlimit", "sched_yield", "lseek",
        "prctl", "socketcall",
#endif
#if defined(__i386__)
        "socketcall",
#endif
};
/* clang-format on */

int confine_signer_calls(Error *reterr) {
        cleanup_with(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r;

        if (!filter)
                return -ENOMEM;
        r = seccomp_add_calls(filter, SCMP_ACT_ALLOW, signer_calls, N_ELEMENTS(signer_calls));
        if (r >= 0)
                r = seccomp_add_data_calls(filter);
        return seccomp_load_filter(filter, r, reterr);
}

static int add_local_sockets(scmp_filter_ctx filter) {
        int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                                 SCMP_A0(SCMP_CMP_EQ, AF_UNIX));

        return r < 0 ? r
                     : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
                                        SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
}

#ifdef SYS_socketcall
/* i386: the arguments of socketcall(2) are in memory, which a filter cannot read, and libseccomp
 * permits all of them. The remaining call is socket(2). */
static int forbid_multiplexed_sockets(Error *reterr) {
        cleanup_with(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        if (!filter)
                return -ENOMEM;
        return seccomp_load_filter(filter,
                                   seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SYS_socketcall,
                                                    1, SCMP_A0(SCMP_CMP_EQ, SYS_SOCKET)),
                                   reterr);
}
#else
static int forbid_multiplexed_sockets(Error *reterr) {
        return 0;
}
#endif

int confine_api_system_calls(Error *reterr) {
        cleanup_with(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r = forbid_multiplexed_sockets(reterr);

        if (r < 0)
                return r;
        if (!filter)
                return -ENOMEM;
        r = seccomp_add_calls(filter, SCMP_ACT_ALLOW, api_calls, N_ELEMENTS(api_calls));
        if (r >= 0)
                r = seccomp_add_data_calls(filter);
        if (r >= 0)
                r = add_local_sockets(filter);
        return seccomp_load_filter(filter, r, reterr);
}

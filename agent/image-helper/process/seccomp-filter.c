/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/process/seccomp-filter.h"

#include "common/cleanup.h"
#include "common/seccomp-rules.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define NAMESPACE_FLAGS                                                                \
        (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
         CLONE_NEWPID | CLONE_NEWNET)

/* clang-format off */
static const char *const unpacker_calls[] = {
        /* files */
        "read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "pwritev", "lseek", "_llseek",
        "close", "close_range", "open", "openat", "openat2", "stat", "fstat", "lstat", "stat64", "fstat64",
        "lstat64", "fstatat64", "newfstatat", "statx", "statfs", "fstatfs", "statfs64", "fstatfs64",
        "access", "faccessat", "faccessat2", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename",
        "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "readlink", "readlinkat", "mknod",
        "mknodat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "fchownat", "lchown",
        "chown32", "fchown32", "lchown32",
        "utimensat", "utimensat_time64", "ftruncate", "ftruncate64", "fallocate", "fadvise64", "getdents",
        "getdents64", "dup", "dup2", "dup3", "flock", "fsync", "fdatasync", "syncfs",
        "sync_file_range", "setxattr", "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr",
        "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr",
        "copy_file_range", "memfd_create", "umask",
        /* memory, time, signals */
        "munmap", "mremap", "brk", "madvise", "rt_sigaction", "rt_sigprocmask",
        "rt_sigreturn", "sigreturn", "sigaltstack", "restart_syscall", "clock_gettime", "clock_gettime64",
        "clock_nanosleep", "clock_nanosleep_time64", "nanosleep", "gettimeofday", "time", "getrandom",
        "futex", "futex_time64", "sched_yield", "sched_getaffinity", "set_robust_list", "rseq",
        "set_tid_address", "arch_prctl", "uname", "sysinfo", "getrlimit", "ugetrlimit",
        /* the process's own children, and the pipes between them */
        "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getuid32", "geteuid32",
        "getgid32", "getegid32", "exit", "exit_group", "fork", "wait4", "waitid", "pidfd_send_signal", "pipe2",
        "poll", "ppoll", "ppoll_time64", "sendmsg", "recvmsg", "prctl", "landlock_create_ruleset",
        "landlock_add_rule", "landlock_restrict_self",
#if HAS_SANITIZER
        "prlimit64", "ptrace", "getcwd", "sched_getscheduler", "vfork", "getpgrp", "kill", "tgkill", "ioctl",
#endif
};

static const char *const fetcher_refusals[] = {
        "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "mount", "umount", "umount2",
        "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsmount", "fspick", "fsconfig",
        "mount_setattr", "unshare", "setns", "bpf", "perf_event_open", "add_key", "keyctl", "request_key",
        "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon",
        "swapoff", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
        "open_by_handle_at", "name_to_handle_at", "personality", "acct", "quotactl", "syslog",
        "settimeofday", "stime", "clock_settime", "clock_settime64", "adjtimex", "sethostname", "setdomainname", "mknod", "mknodat",
        "lookup_dcookie", "modify_ldt", "vm86", "vm86old", "nfsservctl", "vhangup", "iopl", "ioperm", "pidfd_getfd",
};
/* clang-format on */

/* May create child processes, but no namespaces. clone3's flags are in memory, which a filter
 * cannot read; with ENOSYS the C library uses clone. */
static int add_clone(scmp_filter_ctx filter) {
        int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS, 0));

        return r < 0 ? r : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

/* Other commands send signals to processes, or freeze a file system. */
static int add_file_commands(scmp_filter_ctx filter) {
        static const int commands[] = { F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL };
        int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                 SCMP_A1(SCMP_CMP_EQ, TCGETS)); /* isatty(3) */

        for (size_t i = 0; r >= 0 && i < N_ELEMENTS(commands); i++) {
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                                     SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t) commands[i]));
#ifdef SYS_fcntl64
                if (r >= 0)
                        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl64), 1,
                                             SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t) commands[i]));
#endif
        }
        return r;
}

int seccomp_filter_unpacker(Error *reterr) {
        cleanup_with(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r;

        if (!filter)
                return -ENOMEM;
        r = seccomp_add_calls(filter, SCMP_ACT_ALLOW, unpacker_calls, N_ELEMENTS(unpacker_calls));
        if (r >= 0)
                r = add_clone(filter);
        if (r >= 0)
                r = add_file_commands(filter);
        if (r >= 0)
                r = seccomp_add_data_calls(filter);
        return seccomp_load_filter(filter, r, reterr);
}

int seccomp_filter_fetcher(Error *reterr) {
        cleanup_with(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        if (!filter)
                return -ENOMEM;
        r = seccomp_add_calls(filter, SCMP_ACT_ERRNO(EPERM), fetcher_refusals,
                              N_ELEMENTS(fetcher_refusals));
        return seccomp_load_filter(filter, r, reterr);
}

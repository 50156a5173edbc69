/* SPDX-License-Identifier: Apache-2.0 */

/* The built-in RuntimeDefault seccomp profile, for nodes whose distribution does not install one.
 * It allows system calls, grouped by subject, and denies the rest with EPERM for calls that
 * containers must not use, and with ENOSYS for calls newer than this list, so that libraries fall
 * back to older calls. */

#include "agent/bundle/seccomp.h"

#include "common/cleanup.h"

#include <errno.h>

typedef struct SeccompRule {
        const char *names;  /* names, separated by blanks */
        const char *with;   /* only applies with this capability */
        const char *arches; /* only applies on these architectures */
} SeccompRule;

/* clang-format off */
static const SeccompRule allowed[] = {
        /* Files by name. */
        { "access chdir chmod chown chown32 creat faccessat faccessat2 fchmodat fchmodat2 fchownat "
          "futimesat getcwd lchown lchown32 link linkat lstat lstat64 mkdir mkdirat mknod mknodat "
          "newfstatat fstatat64 name_to_handle_at open openat openat2 readlink readlinkat rename "
          "renameat renameat2 rmdir stat stat64 statfs statfs64 statx symlink symlinkat truncate "
          "truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes" },
        /* Open files. */
        { "_llseek close close_range copy_file_range dup dup2 dup3 fadvise64 fadvise64_64 fallocate "
          "fchdir fchmod fchown fchown32 fcntl fcntl64 fdatasync flock fstat fstat64 fstatfs "
          "fstatfs64 fsync ftruncate ftruncate64 getdents getdents64 ioctl lseek pipe pipe2 pread64 "
          "preadv preadv2 pwrite64 pwritev pwritev2 read readahead readdir readv sendfile sendfile64 "
          "splice sync sync_file_range syncfs tee vmsplice write writev cachestat" },
        { "fgetxattr flistxattr fremovexattr fsetxattr getxattr lgetxattr listxattr llistxattr "
          "lremovexattr lsetxattr removexattr setxattr" },
        /* Waiting for files. */
        { "_newselect epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 "
          "epoll_wait epoll_wait_old eventfd eventfd2 fanotify_mark inotify_add_watch inotify_init "
          "inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents "
          "io_pgetevents_time64 io_setup io_submit poll ppoll ppoll_time64 pselect6 pselect6_time64 "
          "select signalfd signalfd4" },
        /* Memory. */
        { "brk get_mempolicy madvise map_shadow_stack mbind membarrier memfd_create memfd_secret "
          "mincore mlock mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall "
          "munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages set_mempolicy "
          "set_mempolicy_home_node" },
        /* Processes and threads. System calls that create namespaces are below. */
        { "execve execveat exit exit_group fork futex futex_requeue futex_time64 "
          "futex_wait futex_waitv futex_wake get_robust_list get_thread_area getcpu getpgid getpgrp "
          "getpid getppid getpriority getrlimit getrusage getsid gettid ioprio_get ioprio_set kill "
          "pidfd_open pidfd_send_signal prctl prlimit64 process_mrelease restart_syscall rseq "
          "sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr "
          "sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 "
          "sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp "
          "set_robust_list set_thread_area set_tid_address setpgid setpriority setrlimit setsid "
          "sysinfo tgkill times tkill ugetrlimit uname vfork wait4 waitid waitpid" },
        { "landlock_add_rule landlock_create_ruleset landlock_restrict_self" },
        /* Allowed since the kernel checks ptrace permissions after the filter (4.8). */
        { "pidfd_getfd process_vm_readv process_vm_writev ptrace" },
        /* Signals. */
        { "alarm pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn "
          "rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack "
          "sigprocmask sigreturn" },
        /* Users, groups and capabilities. */
        { "capget capset getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 "
          "getresgid getresgid32 getresuid getresuid32 getuid getuid32 setfsgid setfsgid32 setfsuid "
          "setfsuid32 setgid setgid32 setgroups setgroups32 setregid setregid32 setresgid "
          "setresgid32 setresuid setresuid32 setreuid setreuid32 setuid setuid32" },
        /* Time. */
        { "adjtimex clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime "
          "clock_gettime64 clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep "
          "setitimer time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 "
          "timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 "
          "timerfd_settime timerfd_settime64" },
        /* Sockets; creating them is below. */
        { "accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom "
          "recvmmsg recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown "
          "socketcall socketpair" },
        /* System V and POSIX interprocess communication. */
        { "ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend "
          "mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop "
          "semtimedop_time64 shmat shmctl shmdt shmget" },
        { "getrandom" },
        { "arch_prctl",                                  .arches = "amd64 x32" },
        { "modify_ldt",                                  .arches = "amd64 x32 x86" },
        { "sync_file_range2 swapcontext",                .arches = "ppc64le" },
        { "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2",
                                                         .arches = "arm arm64" },
        { "s390_pci_mmio_read s390_pci_mmio_write s390_runtime_instr", .arches = "s390 s390x" },
        { "riscv_flush_icache riscv_hwprobe",            .arches = "riscv64" },

        { "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount "
          "mount_setattr move_mount open_tree perf_event_open pivot_root quotactl quotactl_fd "
          "setdomainname sethostname setns syslog umount umount2 unshare",
                                                         .with = "CAP_SYS_ADMIN" },
        { "acct",                                        .with = "CAP_SYS_PACCT" },
        { "bpf",                                         .with = "CAP_BPF" },
        { "chroot",                                      .with = "CAP_SYS_CHROOT" },
        { "clock_settime clock_settime64 settimeofday stime", .with = "CAP_SYS_TIME" },
        { "delete_module finit_module init_module",      .with = "CAP_SYS_MODULE" },
        { "ioperm iopl",                                 .with = "CAP_SYS_RAWIO" },
        { "kcmp process_madvise",                        .with = "CAP_SYS_PTRACE" },
        { "migrate_pages move_pages",                    .with = "CAP_SYS_NICE" },
        { "open_by_handle_at",                           .with = "CAP_DAC_READ_SEARCH" },
        { "perf_event_open",                             .with = "CAP_PERFMON" },
        { "reboot",                                      .with = "CAP_SYS_BOOT" },
        { "syslog",                                      .with = "CAP_SYSLOG" },
        { "vhangup",                                     .with = "CAP_SYS_TTY_CONFIG" },
};

/* Denied with EPERM instead of ENOSYS unless a rule above allows them: a program that gets ENOSYS
 * for a well-known call assumes that the kernel is old. */
static const char denied[] =
        "acct add_key bpf chroot clock_settime clock_settime64 delete_module fanotify_init "
        "finit_module fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register "
        "io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie "
        "migrate_pages mount mount_setattr move_mount move_pages nfsservctl open_by_handle_at "
        "open_tree perf_event_open pivot_root process_madvise quotactl quotactl_fd reboot "
        "request_key setdomainname sethostname setns settimeofday stime swapoff swapon syslog "
        "umount umount2 unshare userfaultfd ustat vhangup vm86 vm86old";

/* personality(2): plain Linux and 32-bit addresses, each without the legacy layouts; and the query.
 */
static const json_int_t personalities[] = { 0x0, 0x8, 0x20000, 0x20008, 0xffffffff };
/* clang-format on */

enum {
        AF_VSOCK_NUMBER = 40,
        /* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
        CLONE_NAMESPACES = 0x7e020000,
};

static json_t *split_syscall_names(const char *text) {
        json_t *array = json_array();

        for (size_t length; *text; text += length + (text[length] == ' ')) {
                length = strcspn(text, " ");
                json_array_append_new(array, json_stringn(text, length));
        }
        return array;
}

/* Whether a list of words, separated by blanks, contains the word. */
static bool has_arch(const char *text, const char *word) {
        size_t length = strlen(word);

        for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
                if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
                        return true;
        return false;
}

static json_t *seccomp_conditions(const char *capability, const char *arches) {
        json_t *object = json_object();

        if (capability)
                json_object_set_new(object, "caps", split_syscall_names(capability));
        if (arches)
                json_object_set_new(object, "arches", split_syscall_names(arches));
        return object;
}

static void append_seccomp_rule(json_t *rules, const char *names, const char *action, json_t *args,
                                json_t *includes, json_t *excludes, int errno_ret) {
        json_t *rule = json_pack("{s:o, s:s, s:o, s:o, s:o}", "names", split_syscall_names(names),
                                 "action", action, "args", args, "includes", includes, "excludes",
                                 excludes);

        if (errno_ret)
                json_object_set_new(rule, "errnoRet", json_integer(errno_ret));
        json_array_append_new(rules, rule);
}

static json_t *seccomp_argument(int index, json_int_t value, json_int_t value_two,
                                const char *comparison) {
        return json_pack("[{s:i, s:I, s:I, s:s}]", "index", index, "value", value, "valueTwo",
                         value_two, "op", comparison);
}

static void append_conditional(json_t *rules) {
        static const char allow[] = "SCMP_ACT_ALLOW", deny[] = "SCMP_ACT_ERRNO";
        const char *admin = "CAP_SYS_ADMIN";

        for (size_t i = 0; i < N_ELEMENTS(personalities); i++)
                append_seccomp_rule(rules, "personality", allow,
                                    seccomp_argument(0, personalities[i], 0, "SCMP_CMP_EQ"),
                                    json_object(), json_object(), 0);
        /* vsock connects to the hypervisor, which is reserved for the host. */
        append_seccomp_rule(rules, "socket", allow,
                            seccomp_argument(0, AF_VSOCK_NUMBER, 0, "SCMP_CMP_NE"), json_object(),
                            json_object(), 0);
        /* Threads and processes are allowed, new namespaces are not. clone3() passes its flags in
         * memory, which a filter cannot read; ENOSYS makes libraries use clone(). On s390 the flags
         * are the second argument. */
        append_seccomp_rule(
                rules, "clone", allow,
                seccomp_argument(0, CLONE_NAMESPACES, 0, "SCMP_CMP_MASKED_EQ"), json_object(),
                json_pack("{s:[s], s:[s, s]}", "caps", admin, "arches", "s390", "s390x"), 0);
        append_seccomp_rule(rules, "clone", allow,
                            seccomp_argument(1, CLONE_NAMESPACES, 0, "SCMP_CMP_MASKED_EQ"),
                            seccomp_conditions(NULL, "s390 s390x"), seccomp_conditions(admin, NULL),
                            0);
        append_seccomp_rule(rules, "clone3", deny, json_array(), json_object(),
                            seccomp_conditions(admin, NULL), ENOSYS);
}

/* One rule per name, because names differ in the capabilities that allow them. */
static void append_denied(json_t *rules) {
        char copy[sizeof(denied)], *rest = copy, *name;

        memcpy(copy, denied, sizeof(denied));
        while ((name = strsep(&rest, " "))) {
                json_t *capabilities = json_array();

                for (size_t i = 0; i < N_ELEMENTS(allowed); i++)
                        if (allowed[i].with && has_arch(allowed[i].names, name))
                                json_array_append_new(capabilities, json_string(allowed[i].with));
                append_seccomp_rule(rules, name, "SCMP_ACT_ERRNO", json_array(), json_object(),
                                    json_pack("{s:o}", "caps", capabilities), EPERM);
        }
}

json_t *seccomp_builtin_profile_json(void) {
        json_t *rules = json_array();

        for (size_t i = 0; i < N_ELEMENTS(allowed); i++)
                append_seccomp_rule(rules, allowed[i].names, "SCMP_ACT_ALLOW", json_array(),
                                    seccomp_conditions(allowed[i].with, allowed[i].arches),
                                    json_object(), 0);
        append_conditional(rules);
        append_denied(rules);
        return json_pack("{s:s, s:i, s:[{s:s, s:[s, s]}, {s:s, s:[s]}, {s:s, s:[s]}], s:o}",
                         "defaultAction", "SCMP_ACT_ERRNO", "defaultErrnoRet", ENOSYS, "archMap",
                         "architecture", "SCMP_ARCH_X86_64", "subArchitectures", "SCMP_ARCH_X86",
                         "SCMP_ARCH_X32", "architecture", "SCMP_ARCH_AARCH64", "subArchitectures",
                         "SCMP_ARCH_ARM", "architecture", "SCMP_ARCH_S390X", "subArchitectures",
                         "SCMP_ARCH_S390", "syscalls", rules);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/call-filter.h"

#include "common/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/net.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define OWN_ARCHITECTURE AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define OWN_ARCHITECTURE AUDIT_ARCH_ARM
#elif defined(__riscv) && __riscv_xlen == 64
#define OWN_ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#error "the name of this architecture in seccomp_data is not known"
#endif

/* A call with one checked argument. */
typedef struct CheckedCall {
        unsigned number;
        unsigned argument;
        bool is_mask;    /* the argument must have none of the bits of values[0]; otherwise it must
                          * be one of the values */
        bool is_pointer; /* the upper half is also checked; for an int the kernel ignores it */
        unsigned n_values;
        unsigned values[8];
} CheckedCall;

enum {
        PROGRAM_MAX = 256,
};

typedef struct FilterProgram {
        struct sock_filter code[PROGRAM_MAX];
        unsigned short n;
} FilterProgram;

/* clang-format off */
static const unsigned allowed_calls[] = {
        SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_recvmsg, SYS_close, SYS_fstat, SYS_ftruncate,
        SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_create1, SYS_munmap, SYS_mremap, SYS_madvise,
        SYS_brk, SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
        SYS_restart_syscall, SYS_getpid, SYS_ppoll, SYS_futex,
#ifdef SYS_newfstatat
        /* This call opens nothing; it is glibc's fstat() on some architectures. */
        SYS_newfstatat,
#endif
#ifdef SYS_epoll_wait
        SYS_epoll_wait, SYS_poll,
#endif
#ifdef SYS_fstat64
        SYS_fstat64, SYS_ftruncate64, SYS_fstatat64, SYS_sigreturn, SYS_clock_gettime64, SYS_ppoll_time64,
        SYS_futex_time64, SYS_statx,
#endif
#ifdef SYS_time
        SYS_time,
#endif
#if HAS_SANITIZER
        SYS_openat, SYS_readlinkat, SYS_prlimit64, SYS_ptrace, SYS_clone, SYS_wait4, SYS_getcwd, SYS_dup,
        SYS_set_tid_address, SYS_execve, SYS_getdents64, SYS_process_vm_readv, SYS_gettid, SYS_tgkill,
        SYS_sigaltstack, SYS_sched_yield, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_getppid, SYS_lseek,
        SYS_prctl, SYS_pipe2, SYS_kill, SYS_nanosleep, SYS_clock_nanosleep, SYS_set_robust_list, SYS_sched_getaffinity,
#ifdef SYS_open
        SYS_open, SYS_readlink, SYS_stat, SYS_access, SYS_dup2, SYS_pipe, SYS_fork, SYS_vfork, SYS_getpgrp,
        SYS_getdents, SYS_lstat,
#endif
#ifdef SYS_arch_prctl
        SYS_arch_prctl,
#endif
#endif
};

static const CheckedCall checked_calls[] = {
        { SYS_ioctl, 1, false, false, 2, { FIONREAD, TIOCSWINSZ } },
        /* F_SETOWN would send signals. */
        { SYS_fcntl, 1, false, false, 4, { F_DUPFD_CLOEXEC, F_GETFL, F_SETFL, F_GETFD } },
#ifdef SYS_fcntl64
        { SYS_fcntl64, 1, false, false, 4, { F_DUPFD_CLOEXEC, F_GETFL, F_SETFL, F_GETFD } },
#endif
        { SYS_mprotect, 2, true, false, 1, { HAS_SANITIZER ? 0 : PROT_EXEC } },
#ifdef SYS_mmap
        { SYS_mmap, 2, true, false, 1, { HAS_SANITIZER ? 0 : PROT_EXEC } },
#endif
#ifdef SYS_mmap2
        { SYS_mmap2, 2, true, false, 1, { HAS_SANITIZER ? 0 : PROT_EXEC } },
#endif
        /* Only without an address, which would name a socket that is not connected. */
        { SYS_sendto, 4, false, true, 1, { 0 } },
        { SYS_recvfrom, 4, false, true, 1, { 0 } },
#ifdef SYS_send
        { SYS_send, 0, true, false, 1, { 0 } },
        { SYS_recv, 0, true, false, 1, { 0 } },
#endif
#ifdef SYS_socketcall
        { SYS_socketcall, 0, false, false, 2, { SYS_SEND, SYS_RECV } },
#endif
};
/* clang-format on */

static void add_code(FilterProgram *program, struct sock_filter code) {
        if (program->n < PROGRAM_MAX)
                program->code[program->n] = code;
        program->n++;
}

static void add_load(FilterProgram *program, size_t offset) {
        add_code(program,
                 (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t) offset));
}

static void add_return(FilterProgram *program, uint32_t action) {
        add_code(program, (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action));
}

/* Skips the next 'skipped' instructions unless the loaded word is 'value'. */
static void skip_unless_equal(FilterProgram *program, uint32_t value, unsigned char skipped) {
        add_code(program,
                 (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped));
}

/* The offset of one half of an argument, because BPF has 32-bit words. */
static size_t argument_offset(unsigned argument, bool upper) {
        bool is_second = upper == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

        return offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) +
               (is_second ? sizeof(uint32_t) : 0);
}

static void add_checked_call(FilterProgram *program, const CheckedCall *call) {
        unsigned n = call->n_values;

        /* Expects the call number to be loaded. 3 instructions check the upper half, and 1 + 2 n
         * the lower half; the last one refuses the call. */
        skip_unless_equal(program, call->number,
                          (unsigned char) ((call->is_pointer ? 3 : 0) + 1 + 2 * n + 1));
        if (call->is_pointer) {
                add_load(program, argument_offset(call->argument, true));
                add_code(program,
                         (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
                add_return(program, SECCOMP_RET_ERRNO | EPERM);
        }
        add_load(program, argument_offset(call->argument, false));
        for (unsigned i = 0; i < n; i++) {
                if (call->is_mask)
                        add_code(program, (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
                                                                        call->values[i], 1, 0));
                else
                        skip_unless_equal(program, call->values[i], 1);
                add_return(program, SECCOMP_RET_ALLOW);
        }
        add_return(program, SECCOMP_RET_ERRNO | EPERM);
}

static void build_filter(FilterProgram *program) {
        add_load(program, offsetof(struct seccomp_data, arch));
        add_code(program,
                 (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0));
        add_return(program, SECCOMP_RET_KILL_PROCESS);
        add_load(program, offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < N_ELEMENTS(allowed_calls); i++) {
                skip_unless_equal(program, allowed_calls[i], 1);
                add_return(program, SECCOMP_RET_ALLOW);
        }
        for (size_t i = 0; i < N_ELEMENTS(checked_calls); i++)
                add_checked_call(program, &checked_calls[i]);
        add_return(program, SECCOMP_RET_ERRNO | EPERM);
}

int call_filter_install(void) {
        FilterProgram program = { .n = 0 };
        struct sock_fprog filter = { .filter = program.code };

        build_filter(&program);
        if (program.n > PROGRAM_MAX)
                return -E2BIG;
        filter.len = program.n;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0 ? -errno : 0;
}

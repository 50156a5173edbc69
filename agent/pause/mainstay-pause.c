/* SPDX-License-Identifier: Apache-2.0 */

/* The first process of a PID namespace that a pod's containers share. A container can access it as
 * /proc/1, change the mode of /proc/1/exe, and trace it. So the program has no C library,
 * environment or path on the node, and only waits. The kernel reaps orphans, because SIGCHLD is
 * ignored, which execve(2) preserves.
 *
 * Descriptors: 0 is a pipe from which no data ever arrives; an int is written to 2, which is 0 or
 * -errno, as soon as containers may see the process. */

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

/* The entry point, which a linker option names. */
void pause_main(void) __attribute__((noreturn));

enum {
        INPUT_FD = 0,
        READY_FD = 2,
};

static long call_kernel(long number, long first, long second, long third) {
#if defined(__x86_64__)
        register long fourth __asm__("r10") = 0;
        register long fifth __asm__("r8") = 0;
        long result;

        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"(number), "D"(first), "S"(second), "d"(third), "r"(fourth), "r"(fifth)
                         : "rcx", "r11", "memory");
        return result;
#elif defined(__i386__)
        long result;

        __asm__ volatile("int $0x80"
                         : "=a"(result)
                         : "a"(number), "b"(first), "c"(second), "d"(third), "S"(0), "D"(0)
                         : "memory");
        return result;
#elif defined(__aarch64__)
        register long x8 __asm__("x8") = number;
        register long x0 __asm__("x0") = first;
        register long x1 __asm__("x1") = second;
        register long x2 __asm__("x2") = third;
        register long x3 __asm__("x3") = 0;
        register long x4 __asm__("x4") = 0;

        __asm__ volatile("svc #0"
                         : "+r"(x0)
                         : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                         : "memory");
        return x0;
#elif defined(__arm__)
        register long r7 __asm__("r7") = number;
        register long r0 __asm__("r0") = first;
        register long r1 __asm__("r1") = second;
        register long r2 __asm__("r2") = third;
        register long r3 __asm__("r3") = 0;
        register long r4 __asm__("r4") = 0;

        __asm__ volatile("svc #0"
                         : "+r"(r0)
                         : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4)
                         : "memory");
        return r0;
#elif defined(__riscv) && __riscv_xlen == 64
        register long a7 __asm__("a7") = number;
        register long a0 __asm__("a0") = first;
        register long a1 __asm__("a1") = second;
        register long a2 __asm__("a2") = third;
        register long a3 __asm__("a3") = 0;
        register long a4 __asm__("a4") = 0;

        __asm__ volatile("ecall"
                         : "+r"(a0)
                         : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4)
                         : "memory");
        return a0;
#else
#error "how a system call is made on this architecture is not known"
#endif
}

void pause_main(void) {
        static const char name[] = "mainstay-pause";
        char byte;
        int result;

        (void) call_kernel(SYS_prctl, PR_SET_NAME, (long) name, 0);
        result = (int) call_kernel(SYS_prctl, PR_SET_DUMPABLE, 0, 0);
        (void) call_kernel(SYS_write, READY_FD, (long) &result, sizeof(result));
        (void) call_kernel(SYS_close, READY_FD, 0, 0);
        /* With seccomp, the kernel kills the process at any system call other than read(2) and
         * write(2). */
        (void) call_kernel(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0);
        for (;;)
                (void) call_kernel(SYS_read, INPUT_FD, (long) &byte, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/process-memory.h"

#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        STACK_BYTES = 112 * 1024, /* less than the kernel lets the stack of a program have */
        FRAME_BYTES = 1024,       /* more than the calls from here need */
};

pid_t process_fork(void) {
        return (pid_t) syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

void process_trim_memory(void) {
        uintptr_t page = (uintptr_t) getpagesize();
        uintptr_t end = ((uintptr_t) __builtin_frame_address(0) - FRAME_BYTES) / page * page;

        (void) malloc_trim(0);
        (void) madvise((void *) (end - STACK_BYTES), STACK_BYTES, MADV_DONTNEED);
}

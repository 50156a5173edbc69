/* SPDX-License-Identifier: Apache-2.0 */

/* A file of its own, as the kernel's header and <sched.h> say the same twice. */

#include "agent/image-helper/priority.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        NICENESS = 10, /* who starts has nine tenths of a processor that both want */
        SLICE_NSEC = 100 * 1000 * 1000
};

#define AUTOGROUP_NICENESS "19"

/* Where the kernel shares the processors out among sessions first (sched_autogroup), a niceness
 * counts within its session only: against a shim and its runtime, which have one of their own, the
 * session's own niceness does. Who leads a job of a terminal stays in the session that is there,
 * and leaves it as it is. */
static void lower_session_priority(void) {
        cleanup_close int fd = -EBADF;

        if (setsid() < 0)
                return;
        fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
                (void) !write(fd, AUTOGROUP_NICENESS, strlen(AUTOGROUP_NICENESS));
}

/* Seldom interrupted, but at once by whoever wakes up: long slices are asked for (Linux 6.12), as
 * befits a batch. The kernel takes the place in the disk's queue from the niceness. */
void lower_process_priority(void) {
        struct sched_attr attributes = { .size = sizeof(attributes),
                                         .sched_policy = SCHED_BATCH,
                                         .sched_nice = NICENESS,
                                         .sched_runtime = SLICE_NSEC };

        (void) syscall(SYS_sched_setattr, 0, &attributes, 0);
        lower_session_priority();
}

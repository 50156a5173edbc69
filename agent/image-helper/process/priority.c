/* SPDX-License-Identifier: Apache-2.0 */

/* In a separate file, because the kernel's header and <sched.h> conflict. */

#include "agent/image-helper/process/priority.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        NICENESS = 10, /* a tenth of a contended processor; 19 would be a hundredth */
        SLICE_NSEC = 100 * 1000 * 1000
};

#define AUTOGROUP_NICENESS "10" /* NICENESS */

/* If the kernel distributes the processors among sessions first (sched_autogroup), a niceness only
 * counts within its session; against a shim and its runtime, which have a separate session, the
 * niceness of this session counts. A job leader on a terminal stays in its session, which is left
 * unchanged. */
static void lower_session_priority(void) {
        cleanup_close int fd = -EBADF;

        if (setsid() < 0)
                return;
        fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
                (void) !write(fd, AUTOGROUP_NICENESS, strlen(AUTOGROUP_NICENESS));
}

/* Rarely interrupted, but preempted at once by waking processes: long time slices are requested
 * (Linux 6.12), as for batch work. The kernel derives the disk priority from the niceness. */
void lower_process_priority(void) {
        struct sched_attr attributes = { .size = sizeof(attributes),
                                         .sched_policy = SCHED_BATCH,
                                         .sched_nice = NICENESS,
                                         .sched_runtime = SLICE_NSEC };

        (void) syscall(SYS_sched_setattr, 0, &attributes, 0);
        lower_session_priority();
}

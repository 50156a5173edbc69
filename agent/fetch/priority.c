/* SPDX-License-Identifier: Apache-2.0 */

/* A file of its own, as the kernel's header and <sched.h> say the same twice. */

#include "agent/fetch/priority.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        NICENESS = 10, /* who starts has nine tenths of a processor that both want */
        SLICE_NSEC = 100 * 1000 * 1000
};

/* Seldom interrupted, but at once by whoever wakes up: long slices are asked for (Linux 6.12), as
 * befits a batch. The kernel takes the place in the disk's queue from the niceness. */
void priority_stand_back(void) {
        struct sched_attr attributes = { .size = sizeof(attributes),
                                         .sched_policy = SCHED_BATCH,
                                         .sched_nice = NICENESS,
                                         .sched_runtime = SLICE_NSEC };

        (void) syscall(SYS_sched_setattr, 0, &attributes, 0);
}

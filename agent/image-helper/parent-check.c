/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/parent-check.h"

#include <unistd.h>

static pid_t own_parent;

void parent_check_set_parent(pid_t parent) {
        own_parent = parent;
}

void parent_check_exit_if_orphaned(void) {
        if (own_parent > 0 && getppid() != own_parent)
                _exit(0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/fetch/orphan.h"

#include <unistd.h>

static pid_t own_parent;

void orphan_set_parent(pid_t parent) {
        own_parent = parent;
}

void orphan_check(void) {
        if (own_parent > 0 && getppid() != own_parent)
                _exit(0);
}

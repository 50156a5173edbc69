/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/kernel-check.h"

#include "common/macros.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system calls that agent, shim and mainstay-image require. mount_setattr is the latest, of
 * Linux 5.12. With statx, landlock_create_ruleset and the system calls of libraries they do as much
 * as they can. */
static const struct {
        const char *name;
        long number;
} needed_calls[] = {
        { "close_range", SYS_close_range },   { "getrandom", SYS_getrandom },
        { "memfd_create", SYS_memfd_create }, { "mount_setattr", SYS_mount_setattr },
        { "move_mount", SYS_move_mount },     { "open_tree", SYS_open_tree },
        { "openat2", SYS_openat2 },           { "pidfd_open", SYS_pidfd_open },
        { "renameat2", SYS_renameat2 },
};

int kernel_check_calls(Error *reterr) {
        for (size_t i = 0; i < N_ELEMENTS(needed_calls); i++)
                /* No call takes these arguments: they are wrong before anything is done. */
                if (syscall(needed_calls[i].number, -1L, -1L, -1L, -1L, -1L) < 0 && errno == ENOSYS)
                        return error_setf(reterr, ENOSYS,
                                          "this kernel lacks the system call '%s'; Mainstay needs "
                                          "Linux 5.12 or later",
                                          needed_calls[i].name);
        return 0;
}

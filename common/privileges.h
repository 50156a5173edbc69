/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Changes the user and drops capabilities before a process reads untrusted data, and protects its
 * memory. Uses system calls, which affect only the calling thread: the C library would change all
 * threads. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

/* Changes to this user and group, without supplementary groups. 0 or -errno; -EINVAL: the user
 * namespace does not contain such an ID. */
int privileges_set_ids(uid_t uid, gid_t gid);

/* If the process runs as root, changes to this system user, or to ID 65534 if there is none, which
 * must have no privileges. 0 or -errno with a message. */
int privileges_leave_root(const char *user, Error *reterr);

/* Drops all capabilities except those whose bit (1 << CAP_CHOWN) is set in 'keep'; executing
 * programs adds none from now on. 0 or -errno. */
int privileges_keep_capabilities(uint64_t keep);

/* No program executed from now on gets a capability. */
void privileges_drop_bounding_set(void);

/* Disables core dumps for this process, and for programs that it starts from now on: no core is
 * written to a file or passed to a program in the kernel's core pattern, such as systemd-coredump,
 * which would also record the environment. A program that needs a core dump must raise its soft
 * limit first. */
void privileges_forbid_cores(void);

/* The same, and also prevents other processes of the user from tracing this one or reading its
 * memory. This is reset by execve() and by a later change of the user. Not with sanitizers, which
 * trace their own process. */
void privileges_hide_memory(void);

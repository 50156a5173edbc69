/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Drops the user and the capabilities before a process reads untrusted data, and keeps its memory
 * to itself. By system calls, which concern the calling thread: the C library would change all of
 * its threads. */

#include "common/error.h"

#include <stdint.h>
#include <sys/types.h>

/* Becomes this user and group, without supplementary groups. 0 or -errno; -EINVAL: the user
 * namespace has no such ID. */
int privileges_set_ids(uid_t uid, gid_t gid);

/* A process that root has started becomes this system user, or the one with ID 65534 if there is
 * none, or none with privileges. 0 or -errno with a message. */
int privileges_leave_root(const char *user, Error *reterr);

/* Keeps, of the capabilities that it has, those with a bit in 'keep' (1 << CAP_CHOWN), and gains
 * none by executing programs from now on. 0 or -errno. */
int privileges_keep_capabilities(uint64_t keep);

/* Nothing that is executed from now on gets a capability. */
void privileges_drop_bounding_set(void);

/* This process, and what it starts from now on, dumps no core when it crashes: neither to a file
 * nor to a program that the kernel's core pattern names, such as systemd-coredump, which would also
 * record the environment. A program that needs a core dump raises its soft limit first. */
void privileges_forbid_cores(void);

/* The same, and other processes of the user neither trace this one nor read its memory. Neither
 * what it executes nor a later change of its user keeps that. Not with sanitizers, which trace
 * their own process. */
void privileges_hide_memory(void);

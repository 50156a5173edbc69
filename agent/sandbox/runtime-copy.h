/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A copy of the OCI runtime in memory that nothing can modify (a sealed memfd).
 *
 * A container must not be able to overwrite the runtime's program through /proc/PID/exe
 * (CVE-2019-5736). Therefore runc and crun execute such a copy of themselves. runc 1.1.15 makes one
 * of 10 MB for each container, unless it is already executed from one. One copy for all containers
 * that start within a few seconds saves a quarter of the CPU time of each start, and its memory. */

struct sd_event;
typedef struct RuntimeCopy RuntimeCopy;

/* 0 or -errno; the caller frees *ret. */
int runtime_copy_new(struct sd_event *event, RuntimeCopy **ret);
RuntimeCopy *runtime_copy_free(RuntimeCopy *copy);

/* Returns a descriptor of the copy of this program (a path, or a name to look up in PATH), which is
 * borrowed until the loop runs again. The copy is released five seconds after the last call.
 * -errno: the program has to be executed by its path, because it is a script, because SELinux
 * would not change the domain, or because memory is short. */
int runtime_copy_get(RuntimeCopy *copy, const char *program);

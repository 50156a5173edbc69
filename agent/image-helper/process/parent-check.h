/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Children that end with the process that forked them. PR_SET_PDEATHSIG does not kill a process of
 * another user if the parent does not have CAP_KILL, so such a process checks for its parent at
 * least once a second. */

#include <stdbool.h>
#include <sys/types.h>

/* fork(2); the child is killed when its parent ends, and remembers its parent for
 * parent_check_exit_if_orphaned(). */
pid_t parent_check_fork(void);

/* The same for a child that the parent may have to kill with SIGKILL: a process that can signal
 * only through descriptors cannot reach other processes of its user. In the parent, 'ret_pidfd' is
 * O_CLOEXEC and owned by the caller. Only for single-threaded processes. */
pid_t parent_check_fork_with_pidfd(int *ret_pidfd);
void parent_check_kill(int pidfd);

/* Whether this process was forked by one of these functions. */
bool parent_check_is_child(void);

/* The error for the exit status of such a child: -ENOMEM if it ended because of insufficient
 * memory, otherwise -EIO. */
int parent_check_error_of_status(int status);

/* Remembers the current parent. */
void parent_check_set_parent(pid_t parent);

/* Exits if the parent has changed. Does nothing if no parent was set. */
void parent_check_exit_if_orphaned(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Children that end with the process that forked them. PR_SET_PDEATHSIG does not kill a process of
 * another user if the parent does not have CAP_KILL. So such a process checks its parent itself, at
 * least once a second. */

#include <stdbool.h>
#include <sys/types.h>

/* fork(2), and in the child: it is killed when its parent ends, and remembers it for
 * parent_check_exit_if_orphaned(). */
pid_t parent_check_fork(void);

/* The same for a child that the parent may have to kill, with SIGKILL: a process that may signal
 * by descriptors only reaches no other process of its user. 'ret_pidfd' is O_CLOEXEC and the
 * caller's, in the parent. For a process with one thread. */
pid_t parent_check_fork_with_pidfd(int *ret_pidfd);
void parent_check_kill(int pidfd);

/* Whether this process was forked so. */
bool parent_check_is_child(void);

/* From the status of such a child: -ENOMEM if it has ended for lack of memory, -EIO else. */
int parent_check_error_of_status(int status);

/* Remembers the current parent. */
void parent_check_set_parent(pid_t parent);

/* Exits if the parent has changed. Does nothing if no parent was set. */
void parent_check_exit_if_orphaned(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process of another user's is not killed by the death of a parent that has no CAP_KILL: the
 * kernel asks for it even there (PR_SET_PDEATHSIG). So it looks for itself, at least once a second.
 */

#include <sys/types.h>

/* From now on this is the parent to live with. */
void parent_check_set_parent(pid_t parent);

/* Ends this process if it has another by now. Nothing where no parent was set. */
void parent_check_exit_if_orphaned(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A child that is this program still and does one thing for which the loop would have to wait, as a
 * disk lets it; it tells no more than how that went. Only programs with an sd-event loop use this.
 */

#include <systemd/sd-event.h>

typedef struct ForkedTask ForkedTask;

/* What the child does, in which nothing may be called that another thread could hold; 0 or -errno.
 * All descriptors above 2 are closed but the one that it was given: what the parent closes must be
 * closed, however long this takes. */
typedef int (*forked_task_run_t)(int fd, const void *work);

/* Called once, from the loop, with what the child gave, or -EIO where it was ended; the Forked is
 * freed after. */
typedef void (*forked_task_done_t)(int r, void *userdata);

/* 'work' and 'fd' (or -EBADF) need not outlive the call. SIGCHLD is blocked. 0 or -errno. */
int forked_task_start(sd_event *event, forked_task_run_t run, int fd, const void *work,
                      forked_task_done_t done, void *userdata, ForkedTask **ret);

/* Forgets it without calling back: the child ends as it will. NULL is fine. */
ForkedTask *forked_task_free(ForkedTask *forked);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A forked child of this program that does one blocking operation, such as a sync, and reports only
 * its result. Only for programs with an sd-event loop. */

#include <systemd/sd-event.h>

typedef struct ForkedTask ForkedTask;

/* Runs in the child, in which functions must not be called whose locks a thread could hold; 0 or
 * -errno. All descriptors above 2 are closed except the given one: a descriptor that the parent
 * closes must be closed, however long the child runs. */
typedef int (*forked_task_run_t)(int fd, const void *work);

/* Called once, from the loop, with the child's result, or -EIO if it was killed; the ForkedTask is
 * freed afterwards. */
typedef void (*forked_task_done_t)(int r, void *userdata);

/* 'work' and 'fd' (or -EBADF) need not outlive the call. SIGCHLD is blocked. 0, or -errno: nothing
 * runs any more. */
int forked_task_start(sd_event *event, forked_task_run_t run, int fd, const void *work,
                      forked_task_done_t done, void *userdata, ForkedTask **ret);

/* Likewise, with the writing end of a pipe as 'fd'. Its reading end, O_CLOEXEC and O_NONBLOCK,
 * which the caller closes; or -errno. */
int forked_task_start_piped(sd_event *event, forked_task_run_t run, const void *work,
                            forked_task_done_t done, void *userdata, ForkedTask **ret);

void forked_task_signal(const ForkedTask *forked, int number);

/* Waits for the child and frees it, without calling back, at the end of a program. The argument
 * that 'done' would get. */
int forked_task_wait(ForkedTask *forked);

/* Frees it without calling back: the child continues. NULL is fine. */
ForkedTask *forked_task_free(ForkedTask *forked);

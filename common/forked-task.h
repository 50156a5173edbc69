/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A forked child of this program that does one blocking operation, such as a sync, and reports only
 * its result. Only for programs with an sd-event loop. */

#include <systemd/sd-event.h>

typedef struct ForkedTask ForkedTask;

/* Runs in the child, which must not call functions whose locks a thread could hold; 0 or -errno.
 * All descriptors above 2 are closed except the given one, so that a descriptor that the parent
 * closes is really closed, however long the child runs. */
typedef int (*forked_task_run_t)(int fd, const void *work);

/* Called once, from the loop, with the child's result, or -EIO if it was killed; the ForkedTask is
 * freed afterwards. */
typedef void (*forked_task_done_t)(int r, void *userdata);

/* 'work' and 'fd' (or -EBADF) need not outlive the call. SIGCHLD must be blocked. 0; or -errno, in
 * which case nothing is running. */
int forked_task_start(sd_event *event, forked_task_run_t run, int fd, const void *work,
                      forked_task_done_t done, void *userdata, ForkedTask **ret);

/* Likewise, with the write end of a pipe as 'fd'. Returns its read end, O_CLOEXEC and O_NONBLOCK,
 * which the caller closes; or -errno. */
int forked_task_start_piped(sd_event *event, forked_task_run_t run, const void *work,
                            forked_task_done_t done, void *userdata, ForkedTask **ret);

void forked_task_signal(const ForkedTask *forked, int number);

/* At the end of a program: waits for the child and frees the ForkedTask without a callback. Returns
 * the result that 'done' would get. */
int forked_task_wait(ForkedTask *forked);

/* Frees the ForkedTask without a callback; the child continues. NULL is allowed. */
ForkedTask *forked_task_free(ForkedTask *forked);

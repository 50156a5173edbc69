/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Operations on a container: start, stop, delete. Each call starts an operation; an event reports
 * its end. */

#include "agent/shim/sandbox-state.h"

/* The cgroup of a container, as in /proc/PID/cgroup; the caller frees it. NULL: unknown, or out of
 * memory. */
char *container_cgroup(const Attempt *attempt);

/* Makes the mounts, then calls the runtime once. A failure is reported as START_FAILED, except for
 * an ID that is already in use: its events belong to another attempt, so an error event is sent. */
void container_run(Shim *shim, const ShimRequest *request);

/* Schedules a signal, now or after a delay, and SIGKILL after the grace period. */
void container_schedule_stop(Shim *shim, const ShimRequest *request);

/* Sets the checkpoint that its events contain for the agent. */
void container_set_checkpoint(Shim *shim, const ShimRequest *request);

/* Removes the remains of an ended attempt. */
void container_delete(Shim *shim, const ShimRequest *request);

/* Its first process has ended, with this waitpid(2) status. */
void container_exited(Shim *shim, Attempt *attempt, int status);

/* The output of the attempt is in its log, or it is unknown whether it is: reports the end of an
 * attempt in ATTEMPT_ENDING. */
void container_drained(Shim *shim, Attempt *attempt);

/* Does everything that is due: sends the signal after its delay, and SIGKILL after the grace
 * period. */
void containers_send_due_signals(Shim *shim, uint64_t now_awake);
uint64_t containers_next_deadline(const Shim *shim);

/* One step of the pod's termination: kills running attempts, deletes ended ones. True when nothing
 * is left. */
bool containers_tear_down(Shim *shim);

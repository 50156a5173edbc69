/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Operations on a container: start, stop, delete. Each call starts an operation; an event reports
 * its end. */

#include "agent/shim/sandbox-state.h"

/* The cgroup of a container, as in /proc/PID/cgroup, in memory that the caller frees. NULL: it is
 * not known, or out of memory. */
char *container_cgroup(const Attempt *attempt);

/* Makes the mounts, then calls the runtime once. A failure is reported as START_FAILED; only an ID
 * in use, whose own events come or have come, is an error event. */
void container_run(Shim *shim, const ShimRequest *request);

/* Sends a signal now or after a delay, and SIGKILL after the grace period. */
void container_schedule_stop(Shim *shim, const ShimRequest *request);

/* Sets the checkpoint that its events carry for the agent. */
void container_set_checkpoint(Shim *shim, const ShimRequest *request);

/* Removes the remains of an ended attempt. */
void container_delete(Shim *shim, const ShimRequest *request);

/* Its first process has ended with this status of waitpid(2). */
void container_exited(Shim *shim, Attempt *attempt, int status);

/* Its output is in its log, or it is not known: reports the end of an attempt that is ending. */
void container_drained(Shim *shim, Attempt *attempt);

/* Does all due work: sends the signal after its delay, SIGKILL after the grace period. */
void containers_send_due_signals(Shim *shim, uint64_t now_awake);
uint64_t containers_next_deadline(const Shim *shim);

/* One step of the pod's termination: kills running attempts, deletes ended ones. True when nothing
 * is left. */
bool containers_tear_down(Shim *shim);

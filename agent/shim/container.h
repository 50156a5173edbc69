/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What can be done with a container. Each call begins something; an event tells its end. */

#include "agent/shim/shim.h"

/* Mounts, then one runtime call. What cannot be is START_FAILED; only an ID that is taken, whose
 * own events come or have come, is an error event. */
void container_run(Shim *shim, const ShimRequest *request);

/* A signal now or after a delay, SIGKILL after the grace. */
void container_stop(Shim *shim, const ShimRequest *request);

/* What the agent wants to be told with its events from now on. */
void container_set_checkpoint(Shim *shim, const ShimRequest *request);

/* Removes what an ended attempt has left. */
void container_delete(Shim *shim, const ShimRequest *request);

/* Its first process has ended with this status of waitpid(2). */
void container_exited(Shim *shim, Attempt *attempt, int status);

/* What is due by now: the signal of those whose delay is over, SIGKILL where the grace is. */
void containers_expire(Shim *shim, uint64_t now_boottime);
uint64_t containers_next_deadline(const Shim *shim);

/* One step towards the end of the pod: kills what runs, deletes what has ended. True when nothing
 * is left. */
bool containers_tear_down(Shim *shim);

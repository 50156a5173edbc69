/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Devices that come and go while a container runs: the device cgroup and the nodes in its /dev. The
 * request has all that the container shall have now; those that it has are in the file "devices" of
 * its bundle, or at first in config.json. Changes are made one after the other, in a task. */

#include "agent/shim/sandbox-state.h"

/* The request is ignored if the container does not run. A failure is logged and reported. */
void live_devices_set(Shim *shim, const ShimRequest *request);

/* Forgets those that wait. */
void live_devices_done(Shim *shim);

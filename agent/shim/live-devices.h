/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Hot-plug devices of a running container: the device cgroup and the nodes in its /dev. A request
 * contains all devices that the container is to have from now on; its current devices are in the
 * file "devices" of its bundle, or initially in config.json. Changes are made one after the other,
 * in a task. */

#include "agent/shim/sandbox-state.h"

/* The request is ignored if the container is not running. A failure is logged and reported. */
void live_devices_set(Shim *shim, const ShimRequest *request);

/* Drops waiting requests. */
void live_devices_done(Shim *shim);

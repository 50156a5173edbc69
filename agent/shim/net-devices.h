/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Network devices of CDI: interfaces of the node that are moved into the network namespace of a
 * container. runc has done this since version 1.4; this implementation works with every runtime. */

#include "common/error.h"

/* For a hook (createRuntime) of the OCI runtime, whose state is in 'state_fd'. mainstay.netDevices
 * in config.json maps names on the node to names in the container; the node's network namespace is
 * the file mainstay.hostNetwork. An interface keeps its global addresses and is brought up. An
 * interface that an earlier container of the pod has received is not moved. 0 or -errno: the
 * container must not start. */
int net_devices_move(int state_fd, Error *reterr);

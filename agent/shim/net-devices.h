/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Network devices of CDI: interfaces of the node that are moved into the network namespace of a
 * container. runc does it from version 1.4 on; this works with every runtime. */

#include "common/error.h"

/* For a hook (createRuntime) of the OCI runtime, whose state is in 'state_fd'. mainstay.netDevices
 * of config.json has the name in the container by the name on the node, whose network namespace is
 * the file mainstay.hostNetwork. Global addresses move with an interface, and it is set up. One
 * that an earlier container of the pod has got is left as it is. 0 or -errno: the container must
 * not start. */
int net_devices_move(int state_fd, Error *reterr);

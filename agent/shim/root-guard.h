/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Guards the root of a container, after the runtime has mounted everything and before it accesses
 * files that containers may have created in volumes. */

#include "common/error.h"

/* For a createRuntime hook of the OCI runtime, whose state is in 'state_fd'. Enters the mount
 * namespace of the container, in which everything is looked up by descriptor below its root:
 *
 * - refuses mounts over processes in /proc, to which a link in a volume may have redirected the
 *   runtime;
 * - mounts over mainstay.maskedPaths, which the runtime does not interpret: runc would mount the
 * container's /dev/null there, which may be a link in a volume, or missing;
 * - makes linux.readonlyPaths read-only, before the runtime mounts a terminal;
 * - creates the working directory, and refuses it if a link leads it into /proc, whose links lead
 * out of the container;
 * - refuses a terminal if a volume covers the runtime's /dev, because runc opens and mounts it by
 *   name.
 *
 * 0 or -errno: the container must not start. */
int root_guard(int state_fd, Error *reterr);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes this process a sandbox: out of what it inherited from the agent, into namespaces and a
 * control group of its own. */

#include "agent/shim/shim.h"

/* Takes the socket from standard input, which becomes /dev/null, and closes all that is not ours. A
 * descriptor or -errno. */
int sandbox_process_take_socket(void);

/* Session, signals, priorities, control group, namespaces; in a network namespace of its own the
 * loopback interface is up. 'ret_host' are descriptors of those namespaces of the node's that were
 * left. 0 or -errno: without its namespaces it is no sandbox; the rest is only warned about. */
int sandbox_process_isolate(const ShimOptions *options, HostNamespaces *ret_host, Error *reterr);

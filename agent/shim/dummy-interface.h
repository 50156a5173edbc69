/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A dummy interface for CNI DEL. A network plugin may inspect the pod's interface during DEL:
 * bridge and ptp read from it the addresses that they masquerade. If the interface is missing,
 * because the shim died with its namespace or an earlier deletion was interrupted, the plugin would
 * leave its rules behind. The plugin is therefore run in a temporary network namespace with a dummy
 * interface that has the expected name and one address. */

#include "common/error.h"

/* For a process that is about to become the plugin; it stays in its namespace. 0 if the namespace
 * in CNI_NETNS of 'environment' ("": none) has the interface; 1 if it is missing: CNI_NETNS then
 * names a namespace with the dummy interface, which is kept open by a descriptor that the plugin
 * inherits; -errno with a message. If such an interface cannot be created, a warning is logged and
 * 0 is returned. */
int dummy_interface_create(const char *interface, const char *address, char **environment,
                           Error *reterr);

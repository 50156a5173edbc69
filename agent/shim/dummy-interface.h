/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A network plugin that deletes may look at the pod's interface first: bridge and ptp learn from it
 * which addresses they have masqueraded. Where the interface is gone, with the namespace of a shim
 * that died or by an earlier deletion that did not come to its end, they would leave their rules
 * for ever. So they are run once more with a stand-in: a network namespace with an interface of
 * that name and with one address, which lives as long as the plugin does. */

#include "common/error.h"

/* For a process that is about to become the plugin, and stays in the namespace where it is. 0 where
 * the namespace that CNI_NETNS of 'environment' names ("": none) has the interface; 1 where it is
 * gone: the variable names a stand-in now, which the process holds by a descriptor that it passes
 * on; -errno with the sentence. A node where such an interface cannot be made is warned of, and 0.
 */
int dummy_interface_create(const char *interface, const char *address, char **environment,
                           Error *reterr);

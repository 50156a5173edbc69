/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether pods can get a network: always on a node with the built-in bridge, otherwise only while
 * the directory of network configurations contains a valid file. inotify reports changes of the
 * directory. */

#include "agent/cni/config-directory.h"

#include <systemd/sd-event.h>

typedef struct NetworkReadiness NetworkReadiness;

/* Updates 'not_ready' of the settings from now on; both must outlive it. 'on_changed' is called
 * from the loop when it has changed. With a default network, the node is always ready and nothing
 * is watched. Creates the directory if it does not exist, like containerd: a network plugin writes
 * to it later. 0 or -errno; a directory that cannot be watched is logged. */
int network_readiness_new(sd_event *event, CniSettings *settings,
                          void (*on_changed)(void *userdata), void *userdata,
                          NetworkReadiness **ret);
NetworkReadiness *network_readiness_free(NetworkReadiness *readiness);
DEFINE_CLEANUP(NetworkReadiness *, network_readiness_free)

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether pods can get a network: on a node without the built-in bridge, only while the directory
 * of network configurations has a valid file. inotify reports changes of the directory. */

#include "agent/cni/config-directory.h"

#include <systemd/sd-event.h>

typedef struct NetworkReadiness NetworkReadiness;

/* Keeps 'not_ready' of the settings, from now on; both outlive it. 'on_changed' is called from the
 * loop when it has changed. With a default network it is always ready and nothing is watched.
 * Makes the directory if there is none, as containerd does: a network plugin writes to it later.
 * 0 or -errno; a directory that cannot be watched is logged. */
int network_readiness_new(sd_event *event, CniSettings *settings,
                          void (*on_changed)(void *userdata), void *userdata,
                          NetworkReadiness **ret);
NetworkReadiness *network_readiness_free(NetworkReadiness *readiness);
DEFINE_CLEANUP(NetworkReadiness *, network_readiness_free)

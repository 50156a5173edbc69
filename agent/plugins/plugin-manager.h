/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's side of the kubelet's plugin interfaces: the sockets device-plugins/kubelet.sock and
 * pod-resources/kubelet.sock below the kubelet's directory, and mainstay-plugins, which is started
 * when a client connects to one of them and ends when nothing is registered. It connects to plugins
 * on behalf of that program, and provides their devices to the device manager. CSI drivers are
 * called in the same way for the CSI manager.
 *
 * Without plugins there is no such process, and nothing wakes the agent. */

#include "agent/csi/csi-manager.h"
#include "agent/devices/device-manager.h"
#include "agent/plugins/plugin-protocol.h"

#include <systemd/sd-event.h>

typedef struct PluginManager PluginManager;

typedef struct PluginManagerConfig { /* all members are borrowed */
        sd_event *event;
        char *program;           /* mainstay-plugins */
        const char *kubelet_dir; /* "/var/lib/kubelet" */
        DeviceManager *devices;
        CsiManager *csi;
        /* Encodes the answer to a pod resources request. 0, or -errno with a message for the
         * client. */
        int (*list)(PluginListMethod method, const char *name, const char *namespace, Buffer *ret,
                    Error *reterr, void *userdata);
        void *userdata;
} PluginManagerConfig;

/* Removes the sockets of an earlier agent and of its plugins, which register again when they notice
 * this, and listens. A directory that cannot be used is logged. 0 or -ENOMEM. */
int plugin_manager_new(const PluginManagerConfig *config, PluginManager **ret);
PluginManager *plugin_manager_free(PluginManager *manager);

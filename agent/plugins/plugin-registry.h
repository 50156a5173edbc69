/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Plugins that register by a socket in plugins_registry (kubelet: pluginmanager): GetInfo is called
 * on each socket, and the result is reported with NotifyRegistrationStatus. A plugin that is
 * refused or does not answer is tried again with a back-off while its socket exists. */

#include "agent/csi/csi-manager.h"
#include "agent/plugins/plugin-protocol.h"

#include <systemd/sd-event.h>

typedef struct PluginRegistry PluginRegistry;

typedef struct PluginRegistryConfig { /* all is borrowed */
        sd_event *event;
        const char *kubelet_dir;
        CsiManager *csi; /* of CSI drivers */
        /* To mainstay-plugins, which PLUGIN_ASK_INFO and PLUGIN_CALL_CSI start. 0 or -errno. */
        int (*send)(const PluginMessage *message, int fd, void *userdata);
        void *userdata;
} PluginRegistryConfig;

/* A directory that cannot be watched is logged. 0 or -ENOMEM. */
int plugin_registry_new(const PluginRegistryConfig *config, PluginRegistry **ret);
PluginRegistry *plugin_registry_free(PluginRegistry *registry);

/* PLUGIN_INFO, PLUGIN_REFUSED, PLUGIN_NOTIFIED; PLUGIN_REGISTER of a plugin that was adopted;
 * PLUGIN_CSI_ANSWER of a driver that registers. It may be changed. */
void plugin_registry_on_message(PluginRegistry *registry, PluginMessage *message);

/* Connects to an endpoint, which is a path below the kubelet's directory. A descriptor that does
 * not block, or -errno: -EXDEV if it is elsewhere. */
int plugin_registry_connect(const PluginRegistry *registry, const char *endpoint);

/* mainstay-plugins has ended: because it was idle, or by an error. */
void plugin_registry_on_host_gone(PluginRegistry *registry, bool was_idle);

/* Connects to the socket at a relative path, in which no link is followed: containers write to the
 * directories of plugins. A descriptor that does not block, or -errno. */
int connect_plugin_socket(int dir_fd, const char *path);

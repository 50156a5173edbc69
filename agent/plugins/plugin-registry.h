/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Plugins that register through a socket in plugins_registry (kubelet: pluginmanager): GetInfo is
 * called on each socket, and the result is reported with NotifyRegistrationStatus. A plugin that is
 * refused or does not respond is retried with a back-off as long as its socket exists. */

#include "agent/csi/csi-manager.h"
#include "agent/plugins/plugin-protocol.h"

#include <systemd/sd-event.h>

typedef struct PluginRegistry PluginRegistry;

typedef struct PluginRegistryConfig { /* all members are borrowed */
        sd_event *event;
        const char *kubelet_dir;
        CsiManager *csi; /* for CSI drivers */
        /* Sends a message to mainstay-plugins, which PLUGIN_ASK_INFO and PLUGIN_CALL_CSI start. 0
         * or -errno. */
        int (*send)(const PluginMessage *message, int fd, void *userdata);
        void *userdata;
} PluginRegistryConfig;

/* A directory that cannot be watched is logged. 0 or -ENOMEM. */
int plugin_registry_new(const PluginRegistryConfig *config, PluginRegistry **ret);
PluginRegistry *plugin_registry_free(PluginRegistry *registry);

/* PLUGIN_INFO, PLUGIN_REFUSED, PLUGIN_NOTIFIED; PLUGIN_REGISTER of an adopted plugin;
 * PLUGIN_CSI_ANSWER of a driver that is registering. The message may be modified. */
void plugin_registry_on_message(PluginRegistry *registry, PluginMessage *message);

/* Connects to an endpoint, which is a path below the kubelet's directory. Returns a non-blocking
 * descriptor, or -errno: -EXDEV if the endpoint is elsewhere. */
int plugin_registry_connect(const PluginRegistry *registry, const char *endpoint);

/* mainstay-plugins has ended: because it was idle, or with an error. */
void plugin_registry_on_host_gone(PluginRegistry *registry, bool was_idle);

/* Connects to the socket at a relative path, in which no link is followed, because containers write
 * to the directories of plugins. Returns a non-blocking descriptor, or -errno. */
int connect_plugin_socket(int dir_fd, const char *path);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The provider of "mainstay.dev/<name>": devices of the node that the configuration lists. If it
 * lists none, nothing is watched, and nothing wakes the agent. */

#include "agent/devices/device-manager.h"
#include "agent/model/config.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct NodeDeviceProvider NodeDeviceProvider;

/* Registers the resources with the devices that are present. All arguments are borrowed. 0, and
 * '*ret' is NULL if no device is configured; -errno. */
int node_device_provider_new(sd_event *event, const NodeDeviceConfigs *configs,
                             DeviceManager *manager, NodeDeviceProvider **ret);
NodeDeviceProvider *node_device_provider_free(NodeDeviceProvider *provider);
DEFINE_CLEANUP(NodeDeviceProvider *, node_device_provider_free)

/* A pod has terminated: absent devices that only that pod had are forgotten. 'provider' may be
 * NULL. */
void node_device_provider_on_released(NodeDeviceProvider *provider);

/* The devices of each resource, for `mainstay debug dump`. */
void node_device_provider_dump(const NodeDeviceProvider *provider, FILE *out);

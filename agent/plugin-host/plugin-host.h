/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* mainstay-plugins: communicates over gRPC with the kubelet's plugins and their clients, and passes
 * checked data to the agent over one channel. It has no state that must survive: the agent starts
 * it when a client connects, and it exits when nothing is registered. */

#include "common/error.h"

/* Runs until it is idle (0), the agent is gone (0), or an error occurs (-errno). The descriptor is
 * the channel of plugin-protocol.h. */
int plugin_host_run(int channel_fd);

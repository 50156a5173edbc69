/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The data that all bundles share, from the configuration and the machine. */

#include "agent/bundle/bundle-settings.h"
#include "agent/node/agent-paths.h"
#include "agent/node/machine-info.h"

/* Everything is borrowed. The caller sets the labels of the node, the seccomp profile and the
 * lookups. */
BundleConfig make_bundle_config(const Config *config, const MachineInfo *machine,
                                const AgentPaths *paths, bool has_slices);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ranges of the built-in network: mainstay.podCIDRs, or podCIDR, which a kubelet without a
 * cluster uses. Internal to this module. */

#include "agent/manifest/decode.h"
#include "agent/model/config.h"

/* Checks both, and derives mainstay.pod_cidrs from podCIDR. 0, -EINVAL with the place, -ENOMEM. */
int config_read_pod_cidrs(const Decoder *d, const YamlNode *root, Config *config);

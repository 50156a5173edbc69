/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* systemReserved, kubeReserved and enforceNodeAllocatable of a KubeletConfiguration. Internal to
 * this module. */

#include "agent/manifest/decode.h"
#include "agent/model/config.h"

/* Reads the amounts, and checks their prerequisites. 0, -EINVAL with the place, -ENOMEM. */
int config_read_reserved(const Decoder *d, const YamlNode *root, Config *config);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The eviction settings of the configuration (evictionHard, evictionSoft, …): validates them and
 * combines them into an EvictionPolicy. */

#include "agent/manifest/decode.h"
#include "agent/model/config.h"

/* 'root' is the document, or NULL. Writes config->eviction. 0, or -EINVAL with the place. */
int config_read_eviction(const Decoder *decoder, const YamlNode *root, Config *config);

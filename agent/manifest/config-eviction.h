/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The eviction… settings of the configuration, which are maps of texts: checked, and worked out
 * into a policy. */

#include "agent/manifest/decode.h"
#include "agent/model/config.h"

/* 'root' is the document, or NULL where there is none. config->eviction is written. 0, or -EINVAL
 * with the place. */
int config_read_eviction(const Decoder *decoder, const YamlNode *root, Config *config);

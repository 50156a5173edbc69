/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The configuration as the kubelet's /configz returns it. */

#include "agent/model/config.h"

/* {"kubeletconfig": …} with a KubeletConfiguration, compact. The section "mainstay" is omitted: it
 * is not part of a KubeletConfiguration, and its proxy addresses may contain passwords. The caller
 * frees it; NULL: out of memory. */
char *config_to_configz_json(const Config *config);

/* The complete configuration under its own names, with secrets masked. The caller frees it; NULL:
 * out of memory. */
char *config_to_masked_json(const Config *config);

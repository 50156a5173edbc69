/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The configuration as the kubelet's /configz has it. */

#include "agent/model/config.h"

/* {"kubeletconfig": …} with a KubeletConfiguration, compact. The section "mainstay" is left out: it
 * is none of a KubeletConfiguration, and its addresses of proxies may hold passwords. The caller
 * frees it; NULL: out of memory. */
char *config_to_configz_json(const Config *config);

/* All of it under its own names, with secrets masked. The caller frees it; NULL: out of memory. */
char *config_to_masked_json(const Config *config);

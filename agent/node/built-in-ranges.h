/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The address ranges of the built-in network: the configured ones, or 10.189.0.0/16 and a unique
 * local IPv6 range of this node (RFC 4193). */

#include "agent/cni/built-in-network.h"
#include "agent/model/config.h"

/* The node's own range, "fd…::/64", which is derived from the machine ID or, without one, random.
 * It is stored in <state-dir>/pod-range, because the bridge and running pods have addresses in it.
 * The caller frees it; NULL: out of memory. A failed write is logged. */
char *built_in_ranges_load_own(const char *state_dir, const char *machine_id_path);

/* If ranges are configured although pods do not get the built-in network, adds the setting to the
 * configuration's 'without_effect', and logs it. 0 or -ENOMEM. */
int built_in_ranges_note_unused(Config *config, bool has_joined);

/* 'own' is borrowed, and so is the configuration. A configured range that the node cannot use is
 * logged. */
CniBuiltInNetwork built_in_ranges_choose(const Config *config, const char *own);

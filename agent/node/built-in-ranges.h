/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ranges of addresses of the built-in network: those of the configuration, or 10.189.0.0/16
 * and, of IPv6, a unique local range of this node (RFC 4193). */

#include "agent/cni/built-in-network.h"
#include "agent/model/config.h"

/* The node's own range, "fd…::/64", from its machine ID, or a random one without. It is kept in
 * <state-dir>/pod-range, because pods have addresses of it and the bridge does. The caller frees
 * it; NULL: out of memory. If it cannot be written, that is logged. */
char *built_in_ranges_load_own(const char *state_dir, const char *machine_id_path);

/* Adds the setting of the ranges to 'without_effect' of the configuration, if there is one and pods
 * do not get the built-in network; and logs it. 0 or -ENOMEM. */
int built_in_ranges_note_unused(Config *config, bool has_joined);

/* 'own' is borrowed, and so is the configuration. A configured range that the node cannot use is
 * logged. */
CniBuiltInNetwork built_in_ranges_choose(const Config *config, const char *own);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The group of a volume of the node (kubelet: SetVolumeOwnership): makes fsGroup the group of
 * everything in it, with read and write permission, and makes new files in its directories inherit
 * the group. */

#include "common/error.h"

/* 'group' is "<gid>" or "<gid>:root-mismatch"; with the latter, nothing is done if the root of the
 * volume already has the group and the mode (fsGroupChangePolicy OnRootMismatch). Follows no links;
 * files that are removed in the meantime are skipped. 0, or -errno with a message. */
int volume_set_fs_group(const char *path, const char *group, Error *reterr);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mounts an overlay whose options are longer than the one page that mount(2) accepts: images have
 * up to 256 layers, below a state directory of any depth. */

#include "agent/shim/fstab.h"
#include "common/error.h"

#include <stdint.h>

/* Mounts the overlay on the directory 'target_fd', with 'attributes' of mount_setattr(2). The
 * working directory is "/" afterwards. 0, or -errno with the number of layers in the message. */
int overlay_mount(const MountSpec *spec, uint64_t attributes, int target_fd, Error *reterr);

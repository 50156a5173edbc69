/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* volumeDevices: block devices of claims that a CSI driver has published or that are local. */

#include "agent/bundle/bundle-settings.h"

/* Adds them to the devices of the container. 0; or -errno with a message. */
int add_block_devices(const BundleConfig *config, const Pod *pod, const Container *container,
                      DeviceEdits *edits, Error *reterr);

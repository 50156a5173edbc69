/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The responses of csi.v1.Node that have content. */

#include "agent/model/csi-driver.h"
#include "common/error.h"

/* 0 or -errno. */
int decode_csi_node_info(const char *data, size_t length, CsiNodeAnswer *ret);
int decode_csi_capabilities(const char *data, size_t length, CsiNodeAnswer *ret);
int decode_csi_volume_stats(const char *data, size_t length, CsiNodeAnswer *ret);

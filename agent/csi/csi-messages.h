/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The requests of csi.v1.Node as Protocol Buffers. All members are borrowed. */

#include "agent/model/values.h"
#include "common/buffer.h"

typedef struct CsiStageRequest {
        const char *volume_id;
        const StringMap *publish_context;
        const char *staging_path; /* NULL: the driver does not support staging */
        const char *target_path;  /* NULL: for NodeStageVolume */
        bool is_block;            /* the next three members are not used for block devices */
        const char *fs_type;
        char *const *mount_flags;
        const char *mount_group; /* NULL: the driver does not apply fsGroup */
        int64_t access_mode;     /* csi.v1.VolumeCapability.AccessMode.Mode */
        bool is_read_only;
        const StringMap *secrets;
        const StringMap *volume_context;
} CsiStageRequest;

/* NodeStageVolume, or NodePublishVolume if there is a target. 0 or -errno. */
int encode_csi_stage_request(const CsiStageRequest *request, Buffer *ret);

typedef struct CsiExpandRequest {
        const char *volume_id;
        const char *path; /* where it is published */
        const char *staging_path;
        int64_t bytes;
        bool is_block; /* the next two members are not used for block devices */
        const char *fs_type;
        char *const *mount_flags;
        int64_t access_mode;
        const StringMap *secrets;
} CsiExpandRequest;

/* NodeExpandVolume. 0 or -errno. */
int encode_csi_expand_request(const CsiExpandRequest *request, Buffer *ret);

/* NodeUnstageVolume, NodeUnpublishVolume and NodeGetVolumeStats: 'path' is the path of the stage or
 * of the published volume. 0 or -errno. */
int encode_csi_unstage_request(const char *volume_id, const char *path, Buffer *ret);

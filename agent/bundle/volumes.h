/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ConfigMap, Secret, downward API and projected volumes: computes and writes their content. */

#include "agent/bundle/atomic-writer.h"

#include "agent/bundle/bundle-settings.h"

/* The files of one volume. -ENOENT if an object or key does not exist, with the kubelet's
 * message. */
int build_volume_payload(const BundleConfig *config, const Pod *pod, const Volume *volume,
                         VolumePayload *ret, Error *reterr);

/* Writes all volumes of the pod, even if one fails. Only changes are written, unless 'rewrite' is
 * set for a starting pod. 0, or the first error: MountVolume.SetUp failed for volume "x" : … */
int write_pod_object_volumes(const BundleConfig *config, const Pod *pod, bool rewrite,
                             Error *reterr);

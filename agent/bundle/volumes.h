/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Volumes that are made of ConfigMaps, Secrets and the pod's own fields: what is in them, and
 * writing it. */

#include "agent/bundle/atomic-writer.h"

#include "agent/bundle/bundle.h"

/* The files of one volume. -ENOENT where an object or a key is not there, in the kubelet's words.
 */
int build_volume_payload(const BundleConfig *config, const Pod *pod, const Volume *volume,
                         VolumePayload *ret, Error *reterr);

/* Writes all of the pod's, as far as they can be: 'anew' for a pod that begins, else only what has
 * changed. 0, or the first failure: MountVolume.SetUp failed for volume "x" : … */
int write_pod_object_volumes(const BundleConfig *config, const Pod *pod, bool rewrite,
                             Error *reterr);

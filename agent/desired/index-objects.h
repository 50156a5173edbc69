/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects of an index that is not in use yet; they determine its images. */

#include "agent/manifest/manifest.h"

typedef struct IndexObjects {
        LIST_OF(ManifestObjects) manifests;
} IndexObjects;

/* Reads the manifests of the directory. Even after a failure (-errno), the readable part is
 * available. */
int index_objects_read(int dir_fd, const char *node_name, IndexObjects *ret);
void index_objects_done(IndexObjects *objects);

/* Calls back with each pod, and with the template of each DaemonSet. */
void index_objects_foreach_pod(const IndexObjects *objects,
                               void (*each)(const Pod *pod, void *userdata), void *userdata);

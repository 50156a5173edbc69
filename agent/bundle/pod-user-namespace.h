/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user namespace of a pod (hostUsers: false; UserNamespacesSupport): 65536 IDs of the node that
 * no other pod has. A pod keeps them as long as its files exist; they are stored in the symlink
 * <state-dir>/pods/<uid>/user-ids and become free when that directory is removed. */

#include "agent/bundle/runtime-spec-input.h"

#include <jansson.h>

/* IDs that are not reserved for any system service or login (systemd's UIDs-GIDs document): 0x80000
 * to 0x6fffffff. */
enum {
        USERNS_IDS_PER_POD = 65536,
        USERNS_FIRST_ID = 0x80000,
        USERNS_END_ID = 0x70000000,
};

/* The first ID of the pod, which is that of its root user. 0, with 0 in '*ret' for a pod in the
 * node's user namespace; -ENOENT if none is allocated yet; another -errno. */
int userns_load_ids(const BundleConfig *config, const Pod *pod, unsigned *ret);

/* The same, but allocates the lowest free range if the pod has none. -ENOSPC: all are in use. */
int userns_allocate_ids(const BundleConfig *config, const Pod *pod, unsigned *ret, Error *reterr);

/* <run-dir>/pods/<uid>/user-namespace, which the shim creates. */
char *userns_path(const BundleConfig *config, const char *uid);

/* Makes the directories that lead to a bundle, and 'bundle_dir' itself, traversable for the pod's
 * root user, which is unprivileged on the node. 0; -EACCES if a directory above the run directory
 * is not traversable; or another -errno. */
int userns_make_traversable(const BundleConfig *config, const char *bundle_dir, Error *reterr);

/* linux.uidMappings and gidMappings. */
void userns_add_id_mappings(json_t *section, unsigned first_id);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Users of a pod's own (hostUsers: false): 65536 of the node's IDs that no other pod has. A pod
 * keeps them for its life, in the link <state-dir>/pods/<uid>/user-ids; they are free again when
 * that directory is gone, which is when nothing of the pod is left. */

#include "agent/bundle/runtime-spec.h"

#include <jansson.h>

/* The IDs that no system service or person has (systemd's uids-gids): 0x80000 to 0x6fffffff. */
enum {
        USERNS_IDS_PER_POD = 65536,
        USERNS_FIRST_ID = 0x80000,
        USERNS_END_ID = 0x70000000,
};

/* The pod's first ID, its own root's. 0, with 0 in '*ret' for a pod with the node's users; -ENOENT
 * where it has got none yet; another -errno. */
int userns_load_ids(const BundleConfig *config, const Pod *pod, unsigned *ret);

/* The same; gives the pod the lowest that are free where it has none. -ENOSPC: there are none. */
int userns_allocate_ids(const BundleConfig *config, const Pod *pod, unsigned *ret, Error *reterr);

/* <run-dir>/pods/<uid>/user-namespace: the shim's. */
char *userns_path(const BundleConfig *config, const char *uid);

/* The directories that lead to a bundle may be passed through by the pod's root, who is nobody on
 * the node; 'bundle_dir' itself as well. 0; -EACCES where one above the run directory may not;
 * another -errno. */
int userns_make_traversable(const BundleConfig *config, const char *bundle_dir, Error *reterr);

/* linux.uidMappings and gidMappings. */
void userns_add_id_mappings(json_t *section, unsigned first_id);

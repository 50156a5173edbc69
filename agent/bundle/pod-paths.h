/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The paths of a pod's files. All are computed from the UID, the container's name and the attempt,
 * so they are unique, and every agent finds them again. The caller frees the results; NULL: out of
 * memory. */

#include "agent/bundle/bundle-settings.h"

/* The container ID: SHA-256 of UID, name and attempt as 64 hex digits, the format that log shippers
 * expect. */
void container_id(const char *uid, const char *container, unsigned attempt, char ret_id[65]);

char *pod_run_dir(const BundleConfig *config, const char *uid);   /* <run-dir>/pods/<uid> */
char *pod_state_dir(const BundleConfig *config, const char *uid); /* <state-dir>/pods/<uid> */
char *pod_shm_dir(const BundleConfig *config, const char *uid);   /* the containers' /dev/shm */

/* <run-dir>/pods/<uid>/<file> */
char *pod_file_path(const BundleConfig *config, const char *uid, const char *file);

/* <state-dir>/pods/<uid>/etc, and the pod's own copy of /etc/hosts, hostname or resolv.conf in it.
 * Containers may write to these files, so they are not in memory, and count as ephemeral storage.
 * The files of a pod that an earlier version started are in the run directory. */
char *pod_etc_dir(const BundleConfig *config, const char *uid);
char *pod_etc_file_path(const BundleConfig *config, const char *uid, const char *file);
char *pod_fstab_path(const BundleConfig *config, const char *uid);

/* <log-dir>/pods/<namespace>_<name>_<uid> */
char *pod_log_dir(const BundleConfig *config, const Pod *pod);

/* <log-dir>/containers/<pod>_<namespace>_<container>-<id>.log, the symlink to the log of one
 * attempt. */
char *container_log_link(const BundleConfig *config, const Pod *pod, const char *container,
                         const char *id);

/* <run-dir>/pods/<uid>/containers/<container>/<attempt> */
char *container_bundle_dir(const BundleConfig *config, const char *uid, const char *container,
                           unsigned attempt);

/* The writable layer: <state-dir>/pods/<uid>/containers/<container>/<attempt> */
char *container_state_dir(const BundleConfig *config, const char *uid, const char *container,
                          unsigned attempt);

/* The path of a volume on the node while the pod runs. The shim mounts hostPath and memory volumes
 * there. */
char *volume_path(const BundleConfig *config, const char *uid, const Volume *volume);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where everything of a pod lies. All are computed from the UID, the container's name and the
 * attempt, so that nothing can be doubled and any agent finds it again. Results are freed by the
 * caller; NULL is no memory. */

#include "agent/bundle/bundle.h"

/* SHA-256 over UID, name and attempt: 64 hex digits, the form that log shippers know container IDs
 * by. */
void container_id(const char *uid, const char *container, unsigned attempt, char ret_id[65]);

char *pod_run_dir(const BundleConfig *config, const char *uid);   /* <run-dir>/pods/<uid> */
char *pod_state_dir(const BundleConfig *config, const char *uid); /* <state-dir>/pods/<uid> */
char *pod_shm_dir(const BundleConfig *config,
                  const char *uid); /* what containers see as /dev/shm */

/* The pod's own copy of a file such as /etc/hosts: <run-dir>/pods/<uid>/hosts */
char *pod_file_path(const BundleConfig *config, const char *uid, const char *file);
char *pod_fstab_path(const BundleConfig *config, const char *uid);

/* <log-dir>/pods/<namespace>_<name>_<uid> */
char *pod_log_dir(const BundleConfig *config, const Pod *pod);

/* <log-dir>/containers/<pod>_<namespace>_<container>-<id>.log, which names the log of one attempt.
 */
char *container_log_link(const BundleConfig *config, const Pod *pod, const char *container,
                         const char *id);

/* <run-dir>/pods/<uid>/containers/<container>/<attempt> */
char *container_bundle_dir(const BundleConfig *config, const char *uid, const char *container,
                           unsigned attempt);

/* The writable layer: <state-dir>/pods/<uid>/containers/<container>/<attempt> */
char *container_state_dir(const BundleConfig *config, const char *uid, const char *container,
                          unsigned attempt);

/* Where a volume is found on the node while the pod runs; hostPath and Memory are mounted there by
 * the shim. */
char *volume_path(const BundleConfig *config, const char *uid, const Volume *volume);

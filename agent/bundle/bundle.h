/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Turns a pod and its images into everything that the shim and the OCI runtime need: directories,
 * fstab, config.json, cgroup values. The pure functions in the other headers of this module compute
 * everything first, then the functions here write it. Writing is idempotent: if an agent dies in
 * between, the next one writes the same again. This module does not decide when a pod or a
 * container runs. */

#include "agent/bundle/bundle-settings.h"

/* Creates the pod's directories, cgroup (with the cgroup of its QoS class) and /etc files. Writes
 * /etc/hosts only for pods in the host network; see bundle_write_hosts(). */
int bundle_prepare_pod(const BundleConfig *config, const Pod *pod, Error *reterr);

/* To be called after bundle_prepare_pod(): creates emptyDirs and the volumes with content from
 * objects, and writes the fstab for the others. -EAGAIN with a message: an object that a volume
 * needs has not been received yet; -errno with the kubelet's message for a volume that cannot be
 * mounted. */
int bundle_prepare_volumes(const BundleConfig *config, const Pod *pod, Error *reterr);

/* Writes the pod's /etc/hosts: with the pod's own addresses or, if there are none, as a copy of the
 * node's. */
int bundle_write_hosts(const BundleConfig *config, const Pod *pod, const char *const *addresses,
                       size_t n_addresses, Error *reterr);

/* Updates the volumes with content from ConfigMaps, Secrets and fields of the pod while containers
 * run: changed content is exchanged atomically; a volume whose objects were removed stays as it
 * was. 0 or the first error. */
int bundle_update_volumes(const BundleConfig *config, const Pod *pod, Error *reterr);

/* The members of a bundle that sandbox_run_container() needs. */
typedef struct Bundle {
        char id[65];
        char *directory;
        char *log;
        char *events_file;
        char **remains; /* directories to remove together with the attempt */
} Bundle;

/* Writes the bundle of one attempt. 'sandbox_pid' is the shim, whose namespaces the container
 * joins. -BUNDLE_CONFIG_ERROR, or another -errno. */
int bundle_prepare_container(const BundleConfig *config, const Pod *pod, const Container *container,
                             unsigned attempt, const Image *image, pid_t sandbox_pid, Bundle *ret,
                             Error *reterr);

/* The termination message of an attempt (core/v1): the end of its terminationMessagePath, or, with
 * policy FallbackToLogsOnError and a failure, the end of its log. NULL: none. The caller frees it.
 */
char *bundle_termination_message(const BundleConfig *config, const Pod *pod,
                                 const Container *container, unsigned attempt, bool has_failed);

/* Computes the paths of an attempt; writes nothing. 0 or -ENOMEM. */
int bundle_attempt_paths(const BundleConfig *config, const Pod *pod, const char *container,
                         unsigned attempt, Bundle *ret);
void bundle_done(Bundle *bundle);

/* Sets the CPU weight of the cgroup of the Burstable QoS class: the sum of the pods' CPU requests.
 * 0 or -errno. */
int bundle_update_qos(const BundleConfig *config, int64_t burstable_milli_cpu, Error *reterr);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SELinux labels of a pod's processes and files, as in the kubelet and container engines: the
 * contexts that the policy defines for containers, with a unique pair of categories for the pod,
 * modified by seLinuxOptions. The options of a container replace those of its pod as a whole; an
 * unset level defaults to the pod's, so that its containers can share volumes. */

#include "agent/bundle/bundle-settings.h"

/* The contexts that the policy defines for containers; NULL if it defines none. */
struct SeLinuxLabelDefaults {
        char *process; /* "system_u:system_r:container_t:s0" */
        char *file;    /* "system_u:object_r:container_file_t:s0" */
};

/* The labels of one container. */
typedef struct SeLinuxLabels {
        char *process; /* NULL: the label of the process that starts it */
        char *file;    /* NULL: files keep their labels */
} SeLinuxLabels;

/* Reads the contexts from the files that container engines use: the file that the container policy
 * installs, otherwise "lxc_contexts" of the configured policy, below 'root', which is "" except in
 * tests. 0, -ENOENT if there is none, or another -errno. */
int selinux_label_defaults_load(const char *root, SeLinuxLabelDefaults *ret);
void selinux_label_defaults_done(SeLinuxLabelDefaults *defaults);

/* Chooses the level of a starting pod, a unique pair of categories, and records it in the run
 * directory, which exists as long as the pod's sandbox. Does nothing if SELinux is disabled. 0,
 * or -errno with a message. */
int selinux_prepare_pod_level(const BundleConfig *config, const Pod *pod, Error *reterr);

/* The labels of a container's processes and files; both NULL for none, as in a pod that started
 * without SELinux. For a privileged container, only its files have a label. A container in the
 * node's PID or IPC namespace has a label only if its options set one. -EINVAL for labels that are
 * not in the policy, -ENOTSUP if labels are not possible; each with a message. */
int selinux_container_labels(const BundleConfig *config, const Pod *pod, const Container *container,
                             SeLinuxLabels *ret, Error *reterr);
void selinux_labels_done(SeLinuxLabels *labels);

/* Whether a container could have its labels if its pod started now. Returns the result that
 * selinux_container_labels() would return for it. */
int selinux_check_container(const BundleConfig *config, const Pod *pod, const Container *container,
                            Error *reterr);

/* The label with which a volume is mounted, so that its files need not be relabelled (kubelet:
 * GetMountSELinuxLabel): the label of the containers that use it and set one, unless the pod
 * requests relabelling. '*ret' is NULL for none. 0; -EINVAL with the kubelet's message if their
 * labels differ; or another error of selinux_container_labels(). */
int selinux_mount_label(const BundleConfig *config, const Pod *pod, const Volume *volume,
                        char **ret, Error *reterr);

/* The label of files that containers share: those of an object volume or emptyDir or, if it is
 * NULL, of the pod itself. It is the label of the containers that use the files, without categories
 * if these differ. '*ret' is NULL for none. 0 or -ENOMEM. */
int selinux_shared_label(const BundleConfig *config, const Pod *pod, const Volume *volume,
                         char **ret);

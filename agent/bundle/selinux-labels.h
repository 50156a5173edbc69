/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SELinux: which labels a pod's processes and files have. As with a kubelet and the container
 * engines: what the policy says of containers, with a pair of categories of the pod's own, and in
 * it what seLinuxOptions say. A container's options go before its pod's as a whole; a level that
 * they do not name is the pod's, so that the pod's containers can share their volumes. */

#include "agent/bundle/bundle.h"

/* What the policy says of containers; NULL where it says nothing. */
struct SeLinuxLabelDefaults {
        char *process; /* "system_u:system_r:container_t:s0" */
        char *file;    /* "system_u:object_r:container_file_t:s0" */
};

/* Of one container. */
typedef struct SeLinuxLabels {
        char *process; /* NULL: that of whoever starts it */
        char *file;    /* NULL: those that things have anyway */
} SeLinuxLabels;

/* Reads them where the container engines do: the file that comes with a policy for containers, else
 * the "lxc_contexts" of the policy that is configured, below 'root', which is "" but in tests. 0,
 * -ENOENT where there is none, or another -errno. */
int selinux_label_defaults_load(const char *root, SeLinuxLabelDefaults *ret);
void selinux_label_defaults_done(SeLinuxLabelDefaults *defaults);

/* Gives a pod that begins its level, a pair of categories that no other pod has, and notes it in
 * its run directory, where it stays for as long as the pod's sandbox does. Does nothing where
 * SELinux is not enabled. 0, or -errno with the sentence. */
int selinux_prepare_pod_level(const BundleConfig *config, const Pod *pod, Error *reterr);

/* What a container's processes and files have; both NULL for none, as in a pod that began without.
 * A privileged container has no label of its own but its files have one, and one that sees the
 * node's processes or shares its IPC has none where nobody says which. -EINVAL for what the policy
 * does not know, -ENOTSUP where there can be none; each with the sentence. */
int selinux_container_labels(const BundleConfig *config, const Pod *pod, const Container *container,
                             SeLinuxLabels *ret, Error *reterr);
void selinux_labels_done(SeLinuxLabels *labels);

/* What containers share: a volume of ours, or, without one, the pod's own files. It has the label
 * of the containers that use it, and no categories where theirs differ. '*ret' is NULL for none. 0
 * or -ENOMEM. */
int selinux_shared_label(const BundleConfig *config, const Pod *pod, const Volume *volume,
                         char **ret);

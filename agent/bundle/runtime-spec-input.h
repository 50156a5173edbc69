/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RuntimeSpecInput: the complete input from which the config.json and the fstab of one attempt are
 * computed. */

#include "agent/bundle/selinux-labels.h"

typedef struct RuntimeSpecInput {
        const BundleConfig *config;
        const Pod *pod;
        const Container *container;
        const Image *image;
        const char *id;
        unsigned attempt;
        pid_t sandbox_pid;    /* shim whose namespaces the container joins */
        unsigned first_id;    /* of the pod's user namespace; 0: the node's */
        const char *users;    /* file of the user namespace, or NULL */
        SeLinuxLabels labels; /* see selinux-labels.h */
        int cgroup_version;
        const char *pod_group; /* see cgroups.h; NULL: the cgroup of a new pod */
} RuntimeSpecInput;

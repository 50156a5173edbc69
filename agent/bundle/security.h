/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who a container's processes are and what they may do: the security contexts of pod and container,
 * the image and the node taken together. */

#include "agent/bundle/runtime-spec.h"

#include <jansson.h>

typedef struct ContainerSecurity {
        uid_t uid;
        gid_t gid;
        json_t *groups;                /* supplementary, with the primary one */
        uint64_t capabilities;         /* a mask; see agent/model/capability.h */
        json_t *seccomp;               /* NULL: no filter */
        const char *app_armor_profile; /* NULL: none is asked for */
        bool is_privileged;
        bool no_new_privileges;
        bool has_read_only_root;
} ContainerSecurity;

/* 0, -ENOMEM, -BUNDLE_CONFIG_ERROR where the pod contradicts the image, or another -errno. */
int resolve_container_security(const RuntimeSpecInput *input, ContainerSecurity *ret,
                               Error *reterr);
void container_security_done(ContainerSecurity *security);

/* process.capabilities: bounding, effective and permitted are the same; none is inheritable or
 * ambient, so that a process that is not root has none. */
json_t *capabilities_section(uint64_t capabilities);

/* linux.devices of a privileged container: all of the node's. */
json_t *node_devices(const char *directory);

/* Whether the node lets this pod set the sysctls that it names. 0, or -EPERM with the sentence. */
int pod_check_sysctls(const BundleConfig *config, const PodSpec *spec, Error *reterr);

/* sysctl.d(5) lines for the shim. NULL where memory ends. */
char *pod_sysctls(const PodSpec *spec);

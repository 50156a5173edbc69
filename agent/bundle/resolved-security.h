/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The security contexts of pod, container and image, resolved: user, groups, capabilities, seccomp
 * and AppArmor profiles, sysctls. */

#include "agent/bundle/runtime-spec-input.h"

#include <jansson.h>

typedef struct ContainerSecurity {
        uid_t uid;
        gid_t gid;
        json_t *groups;                /* supplementary groups, including the primary one */
        uint64_t capabilities;         /* a mask; see agent/model/capability.h */
        json_t *seccomp;               /* NULL: no filter */
        const char *app_armor_profile; /* NULL: none is requested */
        bool is_privileged;
        bool no_new_privileges;
        bool has_read_only_root;
} ContainerSecurity;

/* 0, -ENOMEM, -BUNDLE_CONFIG_ERROR if the pod contradicts the image, or another -errno. */
int resolve_container_security(const RuntimeSpecInput *input, ContainerSecurity *ret,
                               Error *reterr);
void container_security_done(ContainerSecurity *security);

/* process.capabilities: bounding, effective and permitted are equal; inheritable and ambient are
 * empty, so that a non-root process has none. */
json_t *capabilities_section(uint64_t capabilities);

/* linux.devices of a privileged container: all devices of the node. */
json_t *node_devices(const char *directory);

/* Whether the node allows the sysctls of the pod. 0, or -EPERM with a message. */
int pod_check_sysctls(const BundleConfig *config, const PodSpec *spec, Error *reterr);

/* The lines of sysctl.d(5) that the shim applies. NULL: out of memory. */
char *pod_sysctls(const PodSpec *spec);

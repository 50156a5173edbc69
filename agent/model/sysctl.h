/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sysctls that a pod may set: their names, their namespaces, and which are safe. */

#include "common/error.h"

enum {
        SYSCTL_NAME_SIZE = 254,
};

typedef enum SysctlNamespace {
        SYSCTL_OF_NODE, /* not namespaced: cannot be set for a pod */
        SYSCTL_OF_IPC,
        SYSCTL_OF_NETWORK,
} SysctlNamespace;

/* The name with dots as separators. It may also be written with slashes, if dots are part of a
 * component: "net/ipv4/conf/eth0.1/forwarding". Returns the buffer. */
const char *sysctl_dotted(const char *name, char buffer[SYSCTL_NAME_SIZE]);

/* All of the following take dotted names. */
SysctlNamespace sysctl_namespace(const char *name);

/* Kubernetes' list of sysctls that every pod may set. */
bool sysctl_is_safe(const char *name);

/* Whether one of the patterns matches: a name, or a prefix followed by '*'. */
bool sysctl_is_listed(const char *name, char *const *patterns);

/* A check of the configuration: a pattern of namespaced sysctls. */
int check_sysctl_pattern(const char *value, Error *reterr);

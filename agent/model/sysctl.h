/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernel parameters that a pod may set: what they are called, in which namespace they are, and
 * which of them cannot harm a neighbour. */

#include "common/error.h"

enum {
        SYSCTL_NAME_SIZE = 254,
};

typedef enum SysctlNamespace {
        SYSCTL_OF_NODE, /* not namespaced: a pod cannot have its own */
        SYSCTL_OF_IPC,
        SYSCTL_OF_NETWORK,
} SysctlNamespace;

/* The name with dots between its parts. With slashes it may be written too, dots are then part of
 * a part: "net/ipv4/conf/eth0.1/forwarding". Returns the buffer. */
const char *sysctl_dotted(const char *name, char buffer[SYSCTL_NAME_SIZE]);

/* All of the following take dotted names. */
SysctlNamespace sysctl_namespace(const char *name);

/* Kubernetes' list: those that any pod may set. */
bool sysctl_is_safe(const char *name);

/* One of the patterns: a name, or the beginning of one and '*'. */
bool sysctl_is_listed(const char *name, char *const *patterns);

/* For the configuration: a pattern of sysctls that are namespaced. */
int check_sysctl_pattern(const char *value, Error *reterr);

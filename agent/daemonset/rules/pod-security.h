/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Pod Security Standards of Kubernetes 1.36, as enforced on new pods by the admission plugin
 * PodSecurity of an API server. Pure functions. */

#include "agent/model/pod.h"
#include "common/error.h"

typedef enum PodSecurityLevel {
        POD_SECURITY_PRIVILEGED, /* everything is allowed */
        POD_SECURITY_BASELINE,
        POD_SECURITY_RESTRICTED,
        N_POD_SECURITY_LEVELS,
} PodSecurityLevel;

enum {
        POD_SECURITY_LATEST_MINOR = 36, /* the newest version in the table: v1.36 */
};

/* The level that a namespace enforces. */
typedef struct PodSecurityPolicy {
        PodSecurityLevel level;
        unsigned minor; /* minor version: 1.<minor> */
        bool is_latest; /* configured as "latest"; 'minor' is the newest version */
} PodSecurityPolicy;

/* The namespace labels that enforce a level. */
extern const char pod_security_enforce_label[], pod_security_version_label[];

/* The policy from the values of the two labels; NULL: the namespace does not have the label, so the
 * level is privileged and the version is the latest. 0; -EINVAL with a message for a level or a
 * version that is not in the table. */
int pod_security_policy_parse(const char *enforce, const char *version, PodSecurityPolicy *ret,
                              Error *reterr);

/* 1: the policy allows the pod; 0 with the API server's message, which the caller frees: 'violates
 * PodSecurity "baseline:latest": host namespaces (hostPID=true)'; -ENOMEM. The pod must have
 * defaults applied. */
int pod_security_check(const PodSecurityPolicy *policy, const Pod *pod, char **ret_violations);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Admission of the pods that this node creates for the API server's DaemonSets. An API server
 * accepts any template and checks the pods when they are created; the node, which creates the pods
 * itself, makes these checks instead:
 *
 * 1. The namespace of the set is in the configured list, or a pod with the same template was bound
 *    to this node before (admitted-pods.h).
 * 2. The namespace can be read, and its Pod Security level allows the pod. */

#include "agent/apiserver/admitted-pods.h"
#include "agent/apiserver/namespace-policies.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/model/config.h"

/* Borrowed. */
typedef struct DaemonSetAdmission {
        DaemonSetsBy daemonsets_by;
        char *const *namespaces; /* as configured: "*" means all; NULL: not configured */
        const AdmittedPods *admitted;
        NamespacePolicies *policies;
} DaemonSetAdmission;

/* 'pod' was created from a template of the set, and does not exist at the server. 1: it may be
 * created; 0 with the refusal, which the caller releases; -ENOMEM. */
int daemonset_admission_check(const DaemonSetAdmission *admission, const DaemonSet *set,
                              const Pod *pod, DaemonSetRefusal *ret);

/* 'pod', from an API server, equals 'made', which was created here from a template, except for the
 * additions that admission makes to each pod. 1, 0 or -ENOMEM. */
int is_pod_made_alike(const Pod *made, const Pod *pod);

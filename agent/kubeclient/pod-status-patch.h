/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The patch that brings the server's status of a pod to ours: what we say and it does not, and null
 * for what it has of us and we say no more. Conditions are merged by their type, so those of others
 * stay; other lists are whole (k8s.io/api/core/v1, PodStatus). */

/* 'told' is the server's status, NULL: none; 'ours' as pod_to_json() has it. 1 with a strategic
 * merge patch that holds for the object of that UID only, which the caller frees; 0 where there is
 * nothing to say; -EBADMSG; -ENOMEM. */
int kube_pod_status_patch(const char *uid, const char *reported, const char *ours,
                          char **ret_patch);

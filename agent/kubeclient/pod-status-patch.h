/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The patch that makes the server's status of a pod equal to the local one: the fields that differ,
 * and null for fields that are reported but no longer set. Conditions are merged by type, so
 * conditions of other writers stay; other lists are replaced (k8s.io/api/core/v1, PodStatus). */

#include <jansson.h>

/* 'reported' is the server's status as JSON, NULL: none. 1 with a strategic merge patch that is
 * valid only for the object with that UID, which the caller frees; 0 if the two are equal;
 * -EBADMSG; -ENOMEM. A condition in 'ours' whose status equals the reported one gets the reported
 * time if that is later. */
int kube_pod_status_patch(const char *uid, const char *reported, json_t *ours, char **ret_patch);

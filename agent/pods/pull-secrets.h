/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Secrets that a pod names in imagePullSecrets, as the documents that they hold. */

#include "agent/model/object.h"
#include "agent/model/pod.h"

/* Appends the documents that are there. *ret_missing is the names of the Secrets that are not, or
 * that are of another type, or NULL: the kubelet goes on without them. Both are the caller's to
 * end, the first by erase_pull_secrets(). 0 or -ENOMEM. */
int find_pull_secrets(const ObjectLookup *objects, const Pod *pod, char ***ret_documents,
                      char **ret_missing);

/* Wipes and frees. */
void erase_pull_secrets(char ***documents);
#define cleanup_pull_secrets cleanup_with(erase_pull_secrets)

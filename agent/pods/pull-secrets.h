/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* imagePullSecrets of a pod: the Docker configurations that its Secrets hold. */

#include "agent/model/object.h"
#include "agent/model/pod.h"

/* Appends the documents that are there. *ret_missing is the names of the Secrets that are not, or
 * have another type, or NULL: like the kubelet, the caller continues without them. The caller ends
 * both, the first with erase_pull_secrets(). 0 or -ENOMEM. */
int find_pull_secrets(const ObjectLookup *objects, const Pod *pod, char ***ret_documents,
                      char **ret_missing);

/* Wipes and frees. */
void erase_pull_secrets(char ***documents);
#define cleanup_pull_secrets cleanup_with(erase_pull_secrets)

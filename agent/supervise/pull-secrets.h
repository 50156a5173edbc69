/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Secrets that a pod names in imagePullSecrets, as the documents that they hold. */

#include "agent/model/object.h"
#include "agent/model/pod.h"

/* Appends the documents that are there. *ret_missing is the names of the Secrets that are not, or
 * that are of another type, or NULL: the kubelet goes on without them. Both are the caller's to
 * end, the first by pull_secrets_forget(). 0 or -ENOMEM. */
int pull_secrets_find(const ObjectLookup *objects, const Pod *pod, char ***ret_documents,
                      char **ret_missing);

/* Wipes and frees. */
void pull_secrets_forget(char ***documents);
#define cleanup_pull_secrets cleanup_with(pull_secrets_forget)

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* imagePullSecrets of a pod: the Docker configurations that its Secrets hold. */

#include "agent/image/pull-secret.h"
#include "agent/model/object.h"
#include "agent/model/pod.h"

typedef struct PullSecrets {
        PullSecretList list;
        char *unusable; /* names of Secrets that cannot be used, or NULL */
        char *problems; /* the same Secrets, with the reasons */
} PullSecrets;

/* Like the kubelet, the caller continues without the Secrets that cannot be used. 0; -EAGAIN: one
 * is being decrypted, and objects change when it is; or -ENOMEM. */
int pull_secrets_find(const ObjectLookup *objects, const Pod *pod, PullSecrets *ret);

void pull_secrets_done(PullSecrets *secrets);

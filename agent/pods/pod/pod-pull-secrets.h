/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* imagePullSecrets of a pod: the Docker configurations in its Secrets. */

#include "agent/image/pull-secret.h"
#include "agent/model/object.h"
#include "agent/model/pod.h"

typedef struct PullSecrets {
        PullSecretList list;
        char *unusable; /* names of unusable Secrets, or NULL */
        char *problems; /* the same Secrets, with reasons */
} PullSecrets;

/* Like the kubelet, the caller continues without the Secrets that cannot be used. 0; -EAGAIN: one
 * is still being decrypted, after which on_objects_changed() follows; or -ENOMEM. */
int pull_secrets_find(const ObjectLookup *objects, const Pod *pod, PullSecrets *ret);

void pull_secrets_done(PullSecrets *secrets);

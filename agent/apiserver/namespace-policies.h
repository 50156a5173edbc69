/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Pod Security level that a namespace enforces, for the pods that this node creates for the API
 * server's DaemonSets. Each namespace that was looked up is watched by name and cached on disk. The
 * cached labels are used only while the server does not respond; if it refuses the namespace, or if
 * the namespace is gone, there is no policy, and no pod is created. */

#include "agent/apiserver/cache.h"
#include "agent/apiserver/connection-status.h"
#include "agent/daemonset/rules/pod-security.h"

#include <stdio.h>

typedef struct NamespacePolicies NamespacePolicies;

/* Borrowed. */
typedef struct NamespacePoliciesSpec {
        sd_event *event;
        ApiServerCache *cache;
        ConnectionStatus *connection;
        void (*on_changed)(void *userdata); /* a result of namespace_policies_find() has changed */
        void *userdata;
} NamespacePoliciesSpec;

int namespace_policies_new(const NamespacePoliciesSpec *spec, NamespacePolicies **ret);
NamespacePolicies *namespace_policies_free(NamespacePolicies *policies);

/* Namespaces are watched from then on through this client. */
void namespace_policies_set_client(NamespacePolicies *policies, KubeClient *client);

/* The server may have become unreachable, in which case the cached labels are used. */
void namespace_policies_on_connection(const NamespacePolicies *policies);

/* 1 with the policy of the namespace; 0: it is being read; -errno with a message: it cannot be
 * read, does not exist, is being deleted, or enforces a level that this node does not support. */
int namespace_policies_find(NamespacePolicies *policies, const char *namespace,
                            PodSecurityPolicy *ret, Error *reterr);

/* Forgets the namespaces that are not needed, also in the cache. */
void namespace_policies_retain(NamespacePolicies *policies,
                               bool (*is_needed)(const char *namespace, void *userdata),
                               void *userdata);

void namespace_policies_dump(const NamespacePolicies *policies, FILE *out);

/* The cache belongs to another cluster. To be called before there is a client. */
void namespace_policies_forget_cached(NamespacePolicies *policies);

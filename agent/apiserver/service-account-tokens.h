/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Service account tokens (TokenRequest) for projected volumes: one for each pod, audience and
 * lifetime, requested when a volume needs it and refreshed at 80 % of its lifetime. One that cannot
 * be refreshed stays in use. A token is kept until its pod is gone: each one below the run
 * directory, for an agent that restarts, and the first one on disk, with which the pod starts after
 * a boot without the server. The others are not: a quiet node writes nothing to its disk. */

#include "agent/apiserver/cache.h"
#include "agent/apiserver/object-updates.h"
#include "agent/kubeclient/kube-client.h"
#include "agent/model/token.h"

#include <stdio.h>

typedef struct ServiceAccountTokens ServiceAccountTokens;

/* Borrowed. */
typedef struct ServiceAccountTokensSpec {
        sd_event *event;
        ApiServerCache *cache;
        ApiServerCache *run_cache; /* in memory, until the next boot */
        ObjectUpdates *updates;
} ServiceAccountTokensSpec;

int service_account_tokens_new(const ServiceAccountTokensSpec *spec, ServiceAccountTokens **ret);
ServiceAccountTokens *service_account_tokens_free(ServiceAccountTokens *tokens);

/* Sends the requests that are due, and later ones when they are. 0 or -errno. */
int service_account_tokens_start(ServiceAccountTokens *tokens, KubeClient *client);

/* The token; -EAGAIN with a message while there is none, which is then requested; -ENOMEM. */
int service_account_tokens_find(ServiceAccountTokens *tokens, const Pod *pod,
                                const TokenProjection *projection, IssuedToken *ret, Error *reterr);

/* Removes the tokens of a pod that is gone, from the cache as well. */
void service_account_tokens_forget(ServiceAccountTokens *tokens, const char *pod_uid);

/* Prints tokens by pod and account, not the tokens themselves, for `mainstay debug dump`. */
void service_account_tokens_dump(const ServiceAccountTokens *tokens, FILE *out);

/* The cache can be decrypted: tokens that are not there yet are read from it. */
void service_account_tokens_reload_cached(ServiceAccountTokens *tokens);

/* The cache is of another cluster. To be called before there is a client. */
void service_account_tokens_forget_cached(ServiceAccountTokens *tokens);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Service account tokens (TokenRequest) for projected volumes: one for each combination of pod,
 * audience and lifetime, requested when a volume needs it and refreshed at 80 % of its lifetime. A
 * token that cannot be refreshed stays in use. Tokens are kept until their pod is gone: below the
 * run directory, for a restarted agent, and the first one also on disk, so that the pod can start
 * after a reboot without the server. Refreshed tokens are not written to disk, so that an idle node
 * writes nothing to it. */

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

/* Sends the requests that are due and, from then on, each request when it becomes due. 0 or -errno.
 */
int service_account_tokens_start(ServiceAccountTokens *tokens, KubeClient *client);

/* The token; -EAGAIN with a message if there is none yet, in which case it is requested; -ENOMEM.
 */
int service_account_tokens_find(ServiceAccountTokens *tokens, const Pod *pod,
                                const TokenProjection *projection, IssuedToken *ret, Error *reterr);

/* Removes the tokens of a pod that is gone, from the cache as well. */
void service_account_tokens_forget(ServiceAccountTokens *tokens, const char *pod_uid);

/* Prints tokens by pod and account, not the tokens themselves, for `mainstay debug dump`. */
void service_account_tokens_dump(const ServiceAccountTokens *tokens, FILE *out);

/* The cache can now be decrypted: tokens that are missing are read from it. */
void service_account_tokens_reload_cached(ServiceAccountTokens *tokens);

/* The cache belongs to another cluster. To be called before there is a client. */
void service_account_tokens_forget_cached(ServiceAccountTokens *tokens);

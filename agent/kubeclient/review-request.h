/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TokenReviews and SubjectAccessReviews, which mainstay-api has the API server do. Pure. */

#include "agent/kubeclient/kube-client.h"

/* The request that has 'body' reviewed; it borrows it. The caller sets on_done and userdata. */
KubeRequestSpec kube_token_review_request(const char *body);
KubeRequestSpec kube_access_review_request(const char *body);

/* The reviewed object, or {"error":"…"}. The caller frees it; NULL: out of memory. */
char *kube_review_result(const KubeResponse *response);

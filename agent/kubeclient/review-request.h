/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TokenReviews and SubjectAccessReviews that the API server performs for mainstay-api. Pure. */

#include "agent/kubeclient/kube-client.h"

/* The request to review 'body', which it borrows. The caller sets on_done and userdata. */
KubeRequestSpec kube_token_review_request(const char *body);
KubeRequestSpec kube_access_review_request(const char *body);

/* The reviewed object, or {"error":"…"}. The caller frees it; NULL: out of memory. */
char *kube_review_result(const KubeResponse *response);

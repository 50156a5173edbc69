/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/review-request.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

#include <string.h>

#define REVIEW_USEC (10 * USEC_PER_SEC)

static KubeRequestSpec make_review_request(const char *path, const char *body) {
        return (KubeRequestSpec){ .method = "POST",
                                  .path = path,
                                  .body = body,
                                  .body_length = strlen(body),
                                  .deadline_usec = REVIEW_USEC };
}

KubeRequestSpec kube_token_review_request(const char *body) {
        return make_review_request("/apis/authentication.k8s.io/v1/tokenreviews", body);
}

KubeRequestSpec kube_access_review_request(const char *body) {
        return make_review_request("/apis/authorization.k8s.io/v1/subjectaccessreviews", body);
}

static char *format_review_error(const KubeResponse *response) {
        cleanup_free char *message = kube_response_describe_error(response);
        cleanup_json json_t *json =
                json_pack("{s:s}", "error", message ? message : "out of memory");

        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

char *kube_review_result(const KubeResponse *response) {
        bool is_good = !response->error && response->status / 100 == 2;

        return is_good ? strdup(response->body) : format_review_error(response);
}

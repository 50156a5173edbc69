/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of the API server and the agent: token reviews, access reviews, settings, summaries. An
 * error has a message; a user has a name, and an access review can be requested for that user. */

#include "tests/fuzz/fuzz.h"

#include "agent/access/review-objects.h"
#include "agent/node-api/kubernetes/metrics-objects.h"
#include "agent/node-api/process/api-settings.h"
#include "agent/node-api/session/session-result.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <errno.h>

static void check_token_review(const char *text) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *review = NULL;
        ApiUser user = { 0 };
        int r = token_review_parse(text, &user, &error);

        assert(r == 0 || r == 1 || (r == -EBADMSG && error.message));
        if (r == 1) {
                assert(user.name && user.name[0]);
                review = access_review_format(&user, "get", "node1", "pods");
                assert(review);
        }
        api_user_done(&user);
}

static void check_access_review(const char *text) {
        cleanup_error Error error = ERROR_NULL;
        int r = access_review_parse(text, &error);

        assert(r == 0 || r == 1 || (r == -EBADMSG && error.message));
}

static void check_settings(const char *text) {
        cleanup_with(api_settings_done) ApiSettings settings = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = api_settings_parse(text, &settings, &error);

        assert(r == 0 ? settings.node_name != NULL : r == -EBADMSG && error.message);
}

static void check_summary(const char *text) {
        cleanup_json json_t *summary = json_loads(text, 0, NULL);
        cleanup_json json_t *pods = NULL, *nodes = NULL, *labels = NULL;

        if (!summary)
                return;
        pods = pod_metrics_of_summary(summary);
        nodes = node_metrics_of_summary(summary);
        labels = list_labels(pods);
        assert(json_is_array(pods) && json_is_array(nodes) && json_is_object(labels));
        set_labels(pods, labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size), *failure = NULL;

        assert(text);
        check_token_review(text);
        check_access_review(text);
        check_settings(text);
        check_summary(text);
        failure = session_result_failure(text);
        return 0;
}

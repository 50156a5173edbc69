/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/session-result.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

char *session_result_failure(const char *status) {
        cleanup_json json_t *json = json_loads(status, 0, NULL);
        const char *word = json_text(json, "status");
        const char *message = json_text(json, "message");

        if (word && streq(word, "Success"))
                return NULL;
        return strdup(message ? message : "the command failed");
}

char *session_result_of_error(const char *message) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *json = NULL;

        text = text_format("Internal error occurred: error executing command in container: %s",
                           message);
        if (!text)
                return NULL;
        json = json_pack("{s:{}, s:s, s:s, s:s, s:i}", "metadata", "status", "Failure", "message",
                         text, "reason", "InternalError", "code", 500);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

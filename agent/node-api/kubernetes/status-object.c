/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/status-object.h"

#include "common/cleanup.h"
#include "common/json-text.h"

const char *status_reason(unsigned code) {
        static const struct {
                unsigned code;
                const char *reason;
        } reasons[] = { { 400, "BadRequest" },
                        { 401, "Unauthorized" },
                        { 403, "Forbidden" },
                        { 404, "NotFound" },
                        { 405, "MethodNotAllowed" },
                        { 406, "NotAcceptable" },
                        { 409, "Conflict" },
                        { 410, "Expired" },
                        { 415, "UnsupportedMediaType" },
                        { 422, "Invalid" },
                        { 429, "TooManyRequests" },
                        { 500, "InternalError" },
                        { 503, "ServiceUnavailable" },
                        { 504, "Timeout" } };

        for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
                if (reasons[i].code == code)
                        return reasons[i].reason;
        return "";
}

char *status_object_format(unsigned code, const char *message) {
        cleanup_json json_t *status =
                json_pack("{s:s, s:s, s:{}, s:s, s:s, s:s, s:i}", "kind", "Status", "apiVersion",
                          "v1", "metadata", "status", "Failure", "message", message, "reason",
                          status_reason(code), "code", (int) code);

        return status ? json_to_text(status, JSON_COMPACT) : NULL;
}

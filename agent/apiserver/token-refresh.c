/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and parses service account tokens, and computes their refresh time. */

#include "agent/apiserver/token-refresh.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/text.h"

#include <inttypes.h>

uint64_t token_refresh_delay(uint64_t now, uint64_t expires, int64_t seconds) {
        uint64_t lifetime = expires > now ? expires - now : (uint64_t) seconds * USEC_PER_SEC;
        /* A token is never valid for longer than requested; if it seems to be, the clock is
         * behind. */
        uint64_t valid = MIN(lifetime, (uint64_t) seconds * USEC_PER_SEC);
        uint64_t delay = MIN(valid / 10 * 8, TOKEN_REFRESH_MAX_SEC * USEC_PER_SEC);

        return MAX(delay, TOKEN_REFRESH_MIN_SEC * USEC_PER_SEC);
}

bool token_refusal_may_pass(unsigned status, const char *message) {
        static const char *const lags[] = {
                "no relationship found between node ",
                "node requested token bound to a pod scheduled on a different node",
        };

        if (status != 403)
                return false;
        for (size_t i = 0; i < N_ELEMENTS(lags); i++)
                if (strstr(message, lags[i]))
                        return true;
        return false;
}

char *token_request_to_json(const TokenIdentity *identity) {
        json_t *audiences = identity->audience ? json_pack("[s]", identity->audience) : json_null();
        cleanup_json json_t *request = json_pack(
                "{s:s, s:s, s:{s:o, s:I, s:{s:s, s:s, s:s, s:s}}}", "kind", "TokenRequest",
                "apiVersion", "authentication.k8s.io/v1", "spec", "audiences", audiences,
                "expirationSeconds", (json_int_t) identity->seconds, "boundObjectRef", "kind",
                "Pod", "apiVersion", "v1", "name", identity->pod, "uid", identity->pod_uid);

        return request ? json_to_text(request, JSON_COMPACT) : NULL;
}

int token_response_parse(const char *json, size_t length, char **ret_token, uint64_t *ret_expires) {
        cleanup_json json_t *object = json_loadb(json, length, 0, NULL);
        json_t *status = json_object_get(object, "status");
        const char *token = json_text(status, "token");
        const char *expires = json_text(status, "expirationTimestamp");

        if (!token || !token[0] || !expires || parse_rfc3339(expires, ret_expires) < 0)
                return -EBADMSG;
        *ret_token = strdup(token);
        return *ret_token ? 0 : -ENOMEM;
}

char *token_cache_format(const char *token, uint64_t refresh_at, uint64_t expires_at) {
        return text_format("%" PRIu64 "\n%s\n%" PRIu64 "\n", refresh_at, token, expires_at);
}

int token_cache_parse(const char *text, uint64_t now, char **ret_token, uint64_t *ret_delay,
                      uint64_t *ret_expires_at) {
        const char *start = strchr(text, '\n'), *end = start ? strchr(start + 1, '\n') : NULL;
        uint64_t refresh_at = strtoull(text, NULL, 10);
        bool is_plausible =
                refresh_at > now && refresh_at - now <= TOKEN_REFRESH_MAX_SEC * USEC_PER_SEC;

        if (!end)
                return -EBADMSG;
        *ret_token = strndup(start + 1, (size_t) (end - start - 1));
        *ret_delay = is_plausible ? refresh_at - now : 0;
        *ret_expires_at = strtoull(end + 1, NULL, 10);
        return *ret_token ? 0 : -ENOMEM;
}

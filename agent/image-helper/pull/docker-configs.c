/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/docker-configs.h"

#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/document.h"
#include "common/base64.h"
#include "common/json-text.h"

/* ---- credentials ---- */

/* As in the kubelet, the last of several members with the same name is used. */
static int add_secret_credentials(const json_t *secret, int number, const Endpoint *endpoint,
                                  Credentials *credentials) {
        const char *text = json_text(secret, "document");
        cleanup_json json_t *document = NULL;
        size_t n = credentials->n;
        int r = text ? json_parse_text(text, strlen(text), 0, &document, NULL) : 0;

        if (r < 0 || !document)
                return r == -ENOMEM ? r : 0;
        r = credentials_add(credentials, document, endpoint->host, endpoint->repository,
                            /* with_helpers= */ false);
        for (; n < credentials->n; n++)
                credentials->items[n].secret = number;
        return r;
}

int pull_secrets_add_credentials(Endpoints *endpoints) {
        const json_t *secret;
        size_t i;

        for (size_t k = 0; k < endpoints->n; k++) {
                Endpoint *endpoint = &endpoints->items[k];
                cleanup_with(credentials_done) Credentials credentials = { 0 };
                int r = 0;

                json_array_foreach(endpoints->pull_secrets, i, secret)
                        if (r >= 0)
                                r = add_secret_credentials(secret, (int) i, endpoint, &credentials);
                if (r >= 0)
                        r = credentials_append_take(&credentials, &endpoint->credentials);
                if (r < 0)
                        return r;
                endpoint->credentials = credentials;
                credentials = (Credentials){ 0 };
        }
        return 0;
}

/* ---- checks ---- */

/* Parses an entry like the kubelet: "auth" is user and password, separated by a colon. */
static int check_auth(const json_t *entry, const char *registry, Error *reterr) {
        const json_t *auth = json_object_get(entry, "auth");
        const char *encoded = json_string_value(auth);
        char *plain = NULL;
        size_t length = 0;
        bool has_colon;
        int r;

        if (!json_is_object(entry))
                return error_setf(reterr, EINVAL, "its entry for '%.128s' is not an object",
                                  registry);
        if (!auth || json_is_null(auth) || (encoded && !encoded[0]))
                return 0;
        r = encoded ? base64_decode_unpadded(encoded, &plain, &length) : -EINVAL;
        if (r == -ENOMEM)
                return r;
        has_colon = r >= 0 && strchr(plain, ':');
        if (plain)
                explicit_bzero(plain, length);
        free(plain);
        if (has_colon)
                return 0;
        return error_setf(reterr, EINVAL,
                          "its 'auth' for '%.128s' is not the Base64 of user:password", registry);
}

int pull_secret_check(const char *document, bool has_auths, Error *reterr) {
        cleanup_json json_t *json = NULL;
        json_t *entries, *entry;
        const char *registry;
        int r = json_parse_text(document, strlen(document), 0, &json, NULL);

        if (r == -ENOMEM)
                return r;
        if (r < 0 || !json_is_object(json))
                return error_setf(reterr, EINVAL, "its value is not a JSON object");
        entries = has_auths ? json_object_get(json, "auths") : json;
        if (!json_is_object(entries))
                return error_setf(reterr, EINVAL, "its value has no object 'auths'");
        json_object_foreach(entries, registry, entry) {
                r = check_auth(entry, registry, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void print_secret_problem(size_t number, const char *problem) {
        cleanup_json json_t *line =
                json_pack("{s:I, s:s}", "secret", (json_int_t) number, "problem", problem);
        cleanup_free char *text = line ? json_to_text(line, JSON_COMPACT) : NULL;

        if (text)
                (void) puts(text);
        (void) fflush(stdout);
}

void pull_secrets_print_problems(const json_t *pull_secrets) {
        const json_t *secret;
        size_t i;

        json_array_foreach(pull_secrets, i, secret) {
                const char *text = json_text(secret, "document");
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *message = NULL;
                int r = pull_secret_check(
                        strna(text), json_is_true(json_object_get(secret, "hasAuths")), &error);

                if (r < 0)
                        message = format_safe_message(&error, r);
                if (message)
                        print_secret_problem(i, message);
        }
}

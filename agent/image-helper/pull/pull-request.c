/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/pull-request.h"

#include "agent/image-helper/pull/document.h"
#include "common/file.h"
#include "common/json-text.h"

#define SETTINGS_BYTES_MAX (8 * MIB)

static const json_t *get_settings_list(const json_t *document, const char *key) {
        const json_t *value = json_object_get(document, key);

        return json_is_array(value) ? value : NULL;
}

int pull_settings_read(int fd, PullSettings *ret, Error *reterr) {
        cleanup_free char *text = NULL;
        json_t *document = NULL;
        size_t length;
        int r;

        r = read_stream(fd, SETTINGS_BYTES_MAX, &text, &length);
        if (r >= 0 && length == 0) {
                *ret = (PullSettings){ 0 };
                return 0;
        }
        if (r >= 0)
                r = document_parse(text, length, &document, reterr);
        if (text)
                explicit_bzero(text, length);
        if (r < 0)
                return error_prefixf(reterr, r, "settings on standard input");
        *ret = (PullSettings){
                .document = document,
                .auth_file = json_text(document, "authFile"),
                .pull_secrets = get_settings_list(document, "pullSecrets"),
                .auths = get_settings_list(document, "auths"),
                .auth_hashes = get_settings_list(document, "authHashes"),
                .insecure = get_settings_list(document, "insecureRegistries"),
                .mirrors = get_settings_list(document, "mirrors"),
                .proxy_http = json_text(document, "httpProxy"),
                .proxy_https = json_text(document, "httpsProxy"),
                .proxy_none_for = json_text(document, "noProxy"),
                .certificate_directories = get_settings_list(document, "certificateDirectories"),
                .stall_seconds =
                        (unsigned) json_integer_value(json_object_get(document, "stallSeconds")),
                .progress = json_is_true(json_object_get(document, "progress")),
                .signature_policy = json_object_get(document, "signaturePolicy"),
                .origin = json_object_get(document, "origin"),
                .access = json_object_get(document, "access"),
                .is_offline = json_is_true(json_object_get(document, "offline")),
        };
        return 0;
}

static void wipe_pull_secrets(const json_t *secrets) {
        const json_t *secret;
        size_t i;

        json_array_foreach(secrets, i, secret) {
                const char *text = json_text(secret, "document");

                if (text)
                        explicit_bzero((char *) (uintptr_t) text, strlen(text));
        }
}

void pull_settings_done(PullSettings *settings) {
        wipe_pull_secrets(settings->pull_secrets);
        json_decref(settings->document);
        *settings = (PullSettings){ 0 };
}

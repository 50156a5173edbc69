/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/secret/secret-open.h"

#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/pull/document.h"
#include "common/age-file.h"
#include "common/base64.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <stdio.h>

#define SECRET_REQUEST_BYTES_MAX (8 * MIB)

enum {
        IDENTITIES_MAX = 8,
        SIZE_LINE_SIZE = 32
};

typedef struct SecretRequest {
        json_t *document;
        AgeKey identities[IDENTITIES_MAX];
        size_t n_identities;
} SecretRequest;

static void secret_request_done(SecretRequest *request) {
        explicit_bzero(request->identities, sizeof(request->identities));
        json_decref(request->document);
}

static int decode_member(const json_t *value, char **ret, size_t *ret_length, Error *reterr) {
        const char *text = json_string_value(value);
        int r = text ? base64_decode(text, ret, ret_length) : -EINVAL;

        return r == -EINVAL ? error_setf(reterr, EBADMSG, "the request is not valid") : r;
}

static int read_identities(SecretRequest *request, Error *reterr) {
        json_t *item;
        size_t i;

        json_array_foreach(json_object_get(request->document, "identities"), i, item) {
                cleanup_free char *data = NULL;
                size_t length = 0;
                int r = decode_member(item, &data, &length, reterr);

                if (r < 0)
                        return r;
                if (length != AGE_KEY_SIZE || i == IDENTITIES_MAX)
                        return error_setf(reterr, EBADMSG, "the request is not valid");
                memcpy(request->identities[i].bytes, data, length);
                explicit_bzero(data, length);
                request->n_identities++;
        }
        return 0;
}

static int read_secret_request(int from, SecretRequest *request, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r = read_stream(from, SECRET_REQUEST_BYTES_MAX, &text, &length);

        if (r < 0)
                return error_prefixf(reterr, r, "standard input");
        r = document_parse(text, length, &request->document, reterr);
        explicit_bzero(text, length);
        return r < 0 ? r : read_identities(request, reterr);
}

static int append_opened_value(Buffer *results, const char *data, size_t length) {
        char line[SIZE_LINE_SIZE];
        int n = snprintf(line, sizeof(line), "%zu\n", length);
        int r = buffer_append(results, line, (size_t) n, SIZE_MAX);

        return r < 0 ? r : buffer_append(results, data, length, SIZE_MAX);
}

static int open_value(const SecretRequest *request, const json_t *value, Buffer *results,
                      Error *reterr) {
        cleanup_free char *data = NULL, *opened = NULL;
        size_t length = 0, opened_length = 0;
        int r = decode_member(json_object_get(value, "data"), &data, &length, reterr);

        if (r >= 0)
                r = age_decrypt(data, length, request->identities, request->n_identities, &opened,
                                &opened_length, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", strna(json_text(value, "name")));
        r = append_opened_value(results, opened, opened_length);
        explicit_bzero(opened, opened_length);
        return r;
}

static int open_values(const SecretRequest *request, Buffer *results, Error *reterr) {
        json_t *value;
        size_t i;

        json_array_foreach(json_object_get(request->document, "values"), i, value) {
                int r = open_value(request, value, results, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

int decrypt_secret(int from, int to, Error *reterr) {
        cleanup_with(secret_request_done) SecretRequest request = { 0 };
        cleanup_with(buffer_erase) Buffer results = { 0 };
        int r = confine_secret_opener(reterr);

        if (r >= 0)
                r = read_secret_request(from, &request, reterr);
        if (r >= 0)
                r = open_values(&request, &results, reterr);
        if (r >= 0 && results.length > 0)
                r = write_all(to, results.data, results.length);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any input is refused, or results in one entry for each value, each within the response. The same
 * holds for the output of systemd-creds, and for texts that the agent stores encrypted. */

#include "tests/fuzz/fuzz.h"

#include "agent/secret-helper/secret-open.h"
#include "agent/secrets/opening-protocol.h"
#include "common/cleanup.h"
#include "common/encrypted-text.h"
#include "common/systemd-credential.h"

static void check_answer(const Buffer *answer, uint32_t n_values) {
        size_t at = 0;

        for (uint32_t i = 0; i < n_values; i++) {
                OpenedHeader header;

                assert(answer->length - at >= sizeof(header));
                memcpy(&header, answer->data + at, sizeof(header));
                at += sizeof(header);
                assert(header.length <= answer->length - at);
                assert(header.error == 0 || header.error == EBADMSG || header.error == ENOKEY);
                assert(header.error == 0 || header.length <= OPENING_MESSAGE_MAX);
                at += header.length;
        }
        assert(at == answer->length);
}

static void check_request(const uint8_t *data, size_t size) {
        cleanup_with(buffer_erase) Buffer answer = { 0 };
        cleanup_free uint8_t *request = malloc(size + 1);
        OpeningRequest header = { 0 };
        int r;

        assert(request);
        memcpy(request, data, size);
        memcpy(&header, data, MIN(size, sizeof(header)));
        r = open_values(request, size, &answer);
        if (r < 0) {
                assert(r == -EBADMSG && answer.length == 0);
                return;
        }
        for (size_t i = 0; i < size; i++)
                assert(request[i] == 0);
        check_answer(&answer, header.n_values);
}

static void check_text(const uint8_t *data, size_t size) {
        static const uint8_t key[CHACHA_KEY_SIZE] = { 1 };
        cleanup_free char *text = strndup((const char *) data, size), *clear = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        assert(text);
        r = systemd_credential_check(text, &error);
        assert(r == 0 || (r == -EKEYREJECTED && error.message));
        r = decrypt_text(key, "fuzz", text, &clear);
        assert(r == 0 ? is_encrypted_text(text) : r == -EBADMSG && !clear);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        check_request(data, size);
        check_text(data, size);
        return 0;
}

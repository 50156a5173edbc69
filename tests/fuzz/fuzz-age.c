/* SPDX-License-Identifier: Apache-2.0 */
/* Any input is refused with an error, or is decrypted by the identity for which the corpus was
 * encrypted. An accepted recipient is printed exactly as it was written. */

#include "tests/fuzz/fuzz.h"

#include "common/age-file.h"
#include "common/cleanup.h"

static void check_age_file(const void *data, size_t size) {
        cleanup_error Error error = ERROR_NULL, count_error = ERROR_NULL;
        cleanup_free char *text = NULL;
        size_t length = 0;
        AgeKey identity;
        int n = age_count_recipients(data, size, &count_error), r;

        assert(age_identity_parse(
                       "AGE-SECRET-KEY-16DE8V8NF5XKRVN8K240XFCQSGEQPM97ECD0S8FHL2VJ8HWUDKFWQL4C5DM",
                       &identity) == 0);
        r = age_decrypt(data, size, &identity, 1, &text, &length, &error);
        assert(n >= 0 ? n <= AGE_RECIPIENTS_MAX : n == -EBADMSG && count_error.message);
        if (r < 0) {
                assert((r == -EBADMSG || r == -ENOKEY) && error.message && !text);
                return;
        }
        assert(n > 0 && age_is_file(data, size) && length < size && text[length] == '\0');
}

static void check_recipient(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size);
        char again[AGE_RECIPIENT_SIZE];
        AgeKey key;

        if (!text || age_recipient_parse(text, &key) < 0)
                return;
        age_recipient_format(&key, again);
        assert(strcasecmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        check_age_file(data, size);
        check_recipient(data, size);
        return 0;
}

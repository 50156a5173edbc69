/* SPDX-License-Identifier: Apache-2.0 */
/* A quantity of any text has a canonical form of the same value, or is refused with an error. */

#include "tests/fuzz/fuzz.h"

#include "agent/model/quantity.h"
#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size);
        cleanup_with(quantity_done) Quantity first = { 0 }, second = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r;

        assert(text);
        r = quantity_parse(text, &first, &error);
        if (r < 0) {
                assert(r == -EINVAL && error.message && !first.text);
                return 0;
        }
        r = quantity_parse(first.text, &second, &error);
        assert(r >= 0);
        assert(streq(first.text, second.text));
        assert(first.value == second.value && first.milli == second.milli);
        return 0;
}

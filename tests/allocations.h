/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs functions repeatedly, with another allocation failing each time: the functions must neither
 * crash nor leak, and must either report -ENOMEM or return the same result as with enough
 * memory. */

#include "common/failpoint.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <errno.h>

/* Does its work with 'input' and prints the result. Returns 0 with a text that the caller frees, or
 * -errno, also if the text cannot be allocated. */
typedef int (*allocating_function_t)(const char *input, char **ret);

/* Returns 0 and the text, or -ENOMEM if the text is NULL. The last call of such a function. */
static inline int take_allocated_text(char *text, char **ret) {
        *ret = text;
        return text ? 0 : -ENOMEM;
}

static inline void report_different_result(const char *name, unsigned n, const char *got,
                                           const char *expected) {
        size_t at = 0;

        while (got[at] && got[at] == expected[at])
                at++;
        test_fail(__FILE__, __LINE__, name,
                  "with the %uth allocation failing gives at %zu '%.40s', not '%.40s'", n, at,
                  got + at, expected + at);
}

static inline void expect_result_without_allocation(const char *name, unsigned n, int r, int whole,
                                                    const char *got, const char *expected) {
        if (r == -ENOMEM)
                return;
        if (r != whole)
                test_fail(__FILE__, __LINE__, name, "with the %uth allocation failing gives %d", n,
                          r);
        else if (!streq_ptr(got, expected))
                report_different_result(name, n, strna(got), strna(expected));
}

/* Resets an error of jansson, which would make the next text fail. */
static inline void forget_failed_allocations(void) {
        json_t *json = json_null();

        free(json_to_text(json, JSON_ENCODE_ANY));
}

/* Lets each allocation fail once, or only every 'stride'th if there are many. Prints how many
 * failed. */
static inline void expect_survives_failed_allocations(const char *name,
                                                      allocating_function_t function,
                                                      const char *input, unsigned stride) {
        char *expected = NULL, *got;
        int whole = function(input, &expected), r;
        unsigned n = 1, count = 0;
        bool has_failed;

        for (;; n += stride) {
                got = NULL;
                failpoint_fail_allocation(n);
                r = function(input, &got);
                has_failed = failpoint_allocation_has_failed();
                failpoint_fail_allocation(0);
                expect_result_without_allocation(name, n, has_failed ? r : whole, whole, got,
                                                 expected);
                free(got);
                forget_failed_allocations();
                if (!has_failed)
                        break;
                count++;
        }
        free(expected);
        EXPECT(count > 0);
        printf("%s: %u of %u allocations failed\n", name, count, n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tests in C: TEST(unit_does_what_under_which_condition) { … } registers itself. The program of a
 * module runs the tests of all its files, or of the named ones: 'unit-common file hash' runs
 * test-file.c and test-hash.c. Each file has its own process. The program prints one line for each
 * test and fails if one fails. A failed expectation prints its source and both values. */

#undef NDEBUG
#include "common/macros.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Test {
        const char *file, *name;
        void (*run)(void);
        struct Test *next;
} Test;

extern Test *test_list;
extern unsigned test_failures;

void test_register(Test *test);
void test_fail(const char *file, int line, const char *text, const char *format, ...)
        printf_like(4, 5);
void test_expect_string(const char *file, int line, const char *text, const char *got,
                        const char *expected);

/* The absolute path of a directory for the running test, which is removed after it. */
const char *test_directory(void);

#define TEST(name)                                                            \
        static void test_##name(void);                                        \
        __attribute__((constructor)) static void test_register_##name(void) { \
                static Test test = { __FILE__, #name, test_##name, NULL };    \
                test_register(&test);                                         \
        }                                                                     \
        static void test_##name(void)

#define EXPECT(condition)                                                      \
        do {                                                                   \
                if (!(condition))                                              \
                        test_fail(__FILE__, __LINE__, #condition, "is false"); \
        } while (0)

/* Integers of any type. */
#define EXPECT_EQ(got, expected)                                                                 \
        do {                                                                                     \
                intmax_t got_ = (intmax_t) (got), expected_ = (intmax_t) (expected);             \
                if (got_ != expected_)                                                           \
                        test_fail(__FILE__, __LINE__, #got, "is %jd, not %jd", got_, expected_); \
        } while (0)

#define EXPECT_STREQ(got, expected) test_expect_string(__FILE__, __LINE__, #got, got, expected)

/* Exits if the condition is false: for preconditions of all further tests of the file. */
#define REQUIRE(condition)                                                                      \
        do {                                                                                    \
                if (!(condition)) {                                                             \
                        test_fail(__FILE__, __LINE__, #condition, "is false; cannot continue"); \
                        exit(1);                                                                \
                }                                                                               \
        } while (0)

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tests in C: TEST(a_sentence_about_behaviour) { … } registers itself; the program of a module runs
 * the tests of all its files, each file in a process of its own, or of those that are named:
 * 'unit-common file hash' runs test-file.c and test-hash.c. It prints one line for each test and
 * fails when one fails. An expectation prints its source and both values. */

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

/* A directory of its own for the running test, removed after it. Absolute path. */
const char *test_directory(void);

#define TEST(sentence)                                                             \
        static void test_##sentence(void);                                         \
        __attribute__((constructor)) static void test_register_##sentence(void) {  \
                static Test test = { __FILE__, #sentence, test_##sentence, NULL }; \
                test_register(&test);                                              \
        }                                                                          \
        static void test_##sentence(void)

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

/* Ends the process: for what the rest of the file's tests cannot do without. */
#define REQUIRE(condition)                                                                   \
        do {                                                                                 \
                if (!(condition)) {                                                          \
                        test_fail(__FILE__, __LINE__, #condition, "is false; cannot go on"); \
                        exit(1);                                                             \
                }                                                                            \
        } while (0)

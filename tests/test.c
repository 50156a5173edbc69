/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "common/file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

Test *test_list;
unsigned test_failures;
static char directory[64];

void test_register(Test *test) {
        Test **end = &test_list;

        while (*end)
                end = &(*end)->next;
        *end = test;
}

void test_fail(const char *file, int line, const char *text, const char *format, ...) {
        va_list ap;

        test_failures++;
        printf("%s:%d: %s ", file, line, text);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        printf("\n");
}

void test_expect_string(const char *file, int line, const char *text, const char *got,
                        const char *expected) {
        if (!streq_ptr(got, expected))
                test_fail(file, line, text, "is '%s', not '%s'", got ? got : "(null)",
                          expected ? expected : "(null)");
}

const char *test_directory(void) {
        if (!directory[0]) {
                (void) snprintf(directory, sizeof(directory), "/tmp/mainstay-test-XXXXXX");
                REQUIRE(mkdtemp(directory));
        }
        return directory;
}

static void remove_test_directory(void) {
        if (directory[0])
                (void) remove_tree_at(AT_FDCWD, directory);
        directory[0] = '\0';
}

int main(void) {
        unsigned passed = 0, failed = 0;

        setvbuf(stdout, NULL, _IOLBF, 0);
        for (Test *test = test_list; test; test = test->next) {
                unsigned before = test_failures;

                test->run();
                remove_test_directory();
                if (test_failures == before)
                        passed++;
                else
                        failed++;
                printf("%s %s\n", test_failures == before ? "ok" : "FAILED", test->name);
        }
        printf("%u passed, %u failed\n", passed, failed);
        return failed > 0 || passed == 0;
}

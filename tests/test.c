/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "common/file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/wait.h>
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

/* The name of "common/test-file.c" is "file". */
static const char *name_file(const char *path, size_t *ret_length) {
        const char *base = strrchr(path, '/');

        base = base ? base + 1 : path;
        if (strncmp(base, "test-", 5) == 0)
                base += 5;
        *ret_length = strlen(base) - 2;
        return base;
}

static bool is_in_file(const Test *test, const char *file) {
        size_t length;
        const char *name = name_file(test->file, &length);

        return strlen(file) == length && strncmp(name, file, length) == 0;
}

/* Whether MAINSTAY_TESTS_LEFT_OUT, names separated by spaces, contains the test; used by
 * tests/valgrind. */
static bool is_left_out(const Test *test) {
        const char *names = getenv("MAINSTAY_TESTS_LEFT_OUT");
        size_t length = strlen(test->name);

        for (const char *at = names; at && (at = strstr(at, test->name)); at += length)
                if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
                        return true;
        return false;
}

/* Returns whether all tests have passed; a file without tests fails. */
static bool run_tests_of_file(const char *file) {
        unsigned passed = 0, failed = 0;

        for (Test *test = test_list; test; test = test->next) {
                unsigned before = test_failures;

                if (!is_in_file(test, file) || is_left_out(test))
                        continue;
                test->run();
                remove_test_directory();
                if (test_failures == before)
                        passed++;
                else
                        failed++;
                printf("%s %s\n", test_failures == before ? "ok" : "FAILED", test->name);
        }
        printf("%u passed, %u failed\n", passed, failed);
        return failed == 0 && passed > 0;
}

/* Each file runs in its own process, because tests may change the state of their process. */
static bool fork_tests_of_file(const char *file) {
        int status;
        pid_t pid;

        printf("%s:\n", file);
        (void) fflush(stdout);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0)
                exit(run_tests_of_file(file) ? 0 : 1);
        REQUIRE(waitpid(pid, &status, 0) == pid);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run_all_files(void) {
        const char *last = "";
        bool passed = test_list;

        for (Test *test = test_list; test; test = test->next) {
                char file[256];
                size_t length;
                const char *name = name_file(test->file, &length);

                if (strcmp(test->file, last) == 0)
                        continue;
                last = test->file;
                (void) snprintf(file, sizeof(file), "%.*s", (int) length, name);
                passed = fork_tests_of_file(file) && passed;
        }
        return passed;
}

int main(int argc, char **argv) {
        bool passed = true;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc < 2)
                return run_all_files() ? 0 : 1;
        if (argc == 2)
                return run_tests_of_file(argv[1]) ? 0 : 1;
        for (int i = 1; i < argc; i++)
                passed = fork_tests_of_file(argv[i]) && passed;
        return passed ? 0 : 1;
}

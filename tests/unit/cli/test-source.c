/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/cli.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/failing-readdir.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

/* "openssl genpkey -algorithm ed25519"; the key of RFC 8032, section 7.1, TEST 2. */
static const char test_pem[] = "-----BEGIN PRIVATE KEY-----\n"
                               "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
                               "-----END PRIVATE KEY-----\n";

static char *put_source_file(const char *name, const char *text) {
        char *path = path_join(test_directory(), name);

        REQUIRE(path && write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0600) == 0);
        return path;
}

/* Returns the command's standard error. */
static char *run_source_command(const Options *options, int expected) {
        cleanup_free char *path = path_join(test_directory(), "stderr");
        int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), status;
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        char *text = NULL;

        REQUIRE(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
        status = run_source(options);
        fflush(stderr);
        REQUIRE(dup2(saved, STDERR_FILENO) >= 0);
        close_fd(saved);
        close_fd(fd);
        EXPECT_EQ(status, expected);
        REQUIRE(read_file_at(AT_FDCWD, path, 4096, &text, NULL) == 0);
        return text;
}

typedef struct TestSource {
        char *from, *to, *key;
        char *words[4];
        Options options;
} TestSource;

static void test_source_init(TestSource *test) {
        cleanup_free char *manifest = NULL;
        static char verb[] = "sign";

        *test = (TestSource){ .from = path_join(test_directory(), "from"),
                              .to = path_join(test_directory(), "to"),
                              .key = put_source_file("key.pem", test_pem) };
        REQUIRE(mkdir(test->from, 0700) == 0);
        manifest = put_source_file("from/a.yaml", MANIFEST);
        test->words[0] = verb;
        test->words[1] = test->from;
        test->words[2] = test->to;
        test->options =
                (Options){ .key = test->key, .fleet = "shops", .words = test->words, .n_words = 3 };
}

static void test_source_done(TestSource *test) {
        free(test->from);
        free(test->to);
        free(test->key);
}

static bool has_index(const TestSource *test) {
        cleanup_free char *path = path_join(test->to, "index.json");

        return access(path, F_OK) == 0;
}

TEST(a_directory_that_cannot_be_listed_completely_is_not_signed)
{
        cleanup_free char *message = NULL, *expected = NULL, *none = NULL;
        TestSource test;

        test_source_init(&test);
        readdir_calls_left = 1;
        message = run_source_command(&test.options, STATUS_FAILED);
        readdir_calls_left = -1;
        REQUIRE(asprintf(&expected, "error: %s: Input/output error\n", test.from) > 0);
        EXPECT_STREQ(message, expected);
        EXPECT(!has_index(&test));
        none = run_source_command(&test.options, STATUS_OK);
        EXPECT_STREQ(none, "");
        EXPECT(has_index(&test));
        test_source_done(&test);
}

TEST(an_error_message_names_the_invalid_file_or_option)
{
        cleanup_free char *signature = NULL, *keys = NULL, *path = NULL;
        static char verb[] = "verify";
        TestSource test;

        test_source_init(&test);
        path = path_join(test.to, "index.json.sig");
        REQUIRE(mkdir(test.to, 0700) == 0 && mkdir(path, 0700) == 0);
        signature = run_source_command(&test.options, STATUS_FAILED);
        EXPECT_STREQ(signature, "error: index.json.sig: Is a directory\n");
        test.words[0] = verb;
        test.words[1] = test.to;
        test.options.n_words = 2;
        test.options.keys = "x";
        keys = run_source_command(&test.options, STATUS_FAILED);
        EXPECT_STREQ(keys, "error: --keys: must be public keys of Ed25519 in base64\n");
        test_source_done(&test);
}

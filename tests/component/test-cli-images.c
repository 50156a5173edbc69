/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/cli-run.h"

#include "common/file-stamp.h"
#include "common/json-text.h"
#include "common/text.h"

/* The commands of images against a fake agent. */

/* An archive whose content starts with "wrong" cannot be used. */
static json_t *describe_archive(const char *path, const char *file) {
        cleanup_free char *whole = path_join(path, file), *text = NULL;
        struct stat st;

        REQUIRE(stat(whole, &st) == 0 && read_file_at(AT_FDCWD, whole, KIB, &text, NULL) >= 0);
        return json_pack("{s:s, s:I, s:I, s:b, s:s*}", "file", file, "inode",
                         (json_int_t) st.st_ino, "mtimeNsec",
                         (json_int_t) file_stamp_of(&st).modified_nsec, "isRead", 1, "error",
                         strncmp(text, "wrong", 5) == 0 ? "is not an archive" : NULL);
}

static char *list_preload_directory(void) {
        cleanup_free char *path = path_join(test_directory(), "preload");
        cleanup_json json_t *archives = json_array(), *all = NULL;
        cleanup_closedir DIR *dir = opendir(path);
        const struct dirent *entry;

        REQUIRE(dir);
        while ((entry = readdir(dir)))
                if (strstr(entry->d_name, ".tar") && !strstr(entry->d_name, ".part"))
                        (void) json_array_append_new(archives,
                                                     describe_archive(path, entry->d_name));
        all = json_pack("{s:s, s:O}", "preload", path, "archives", archives);
        return json_to_text(all, 0);
}

static char *list_empty_preload_directory(void) {
        return text_format("{\"preload\":\"%s/preload\",\"archives\":[]}", test_directory());
}

static char *write_test_file(const char *name, const char *text) {
        char *path = path_join(test_directory(), name);

        REQUIRE(path && write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0644) >= 0);
        return path;
}

static void expect_file(const char *name, const char *text) {
        cleanup_free char *path = path_join(test_directory(), name), *actual = NULL;

        (void) read_file_at(AT_FDCWD, path, KIB, &actual, NULL);
        EXPECT_STREQ(actual, text);
}

static size_t count_files(const char *name) {
        cleanup_free char *path = path_join(test_directory(), name);
        cleanup_closedir DIR *dir = opendir(path);
        const struct dirent *entry;
        size_t n = 0;

        REQUIRE(dir);
        while (read_directory_entry(dir, &entry) > 0)
                n++;
        return n;
}

static void import_archive(const char *content, int status) {
        cleanup_free char *path = write_test_file("app.tar", content);
        cleanup_free char *arguments = text_format("images import %s", path);
        cleanup_free char *out = text_format("%s/preload/app.tar\n", test_directory());

        expect_run(arguments, status, status == 0 ? out : "",
                   status == 0 ? "" : "error: app.tar: is not an archive\n");
}

TEST(import_keeps_the_previous_archive_if_the_new_one_is_rejected)
{
        cleanup_free char *preload = path_join(test_directory(), "preload");

        start_http_server();
        fake_agent.images = list_preload_directory;
        REQUIRE(mkdir_parents_at(AT_FDCWD, preload, 0700) >= 0);
        import_archive("wrong 1", 1);
        EXPECT_EQ(count_files("preload"), 0);
        import_archive("right 2", 0);
        expect_file("preload/app.tar", "right 2");
        import_archive("wrong 3", 1);
        expect_file("preload/app.tar", "right 2");
        import_archive("right 4", 0);
        expect_file("preload/app.tar", "right 4");
        EXPECT_EQ(count_files("preload"), 1);
        stop_http_server();
}

TEST(import_does_not_replace_a_directory)
{
        cleanup_free char *directory = path_join(test_directory(), "preload/app.tar");
        cleanup_free char *path = write_test_file("app.tar", "right"), *err = NULL;
        cleanup_free char *arguments = text_format("images import %s", path);

        start_http_server();
        fake_agent.images = list_empty_preload_directory;
        REQUIRE(mkdir_parents_at(AT_FDCWD, directory, 0700) >= 0);
        err = text_format("error: %s: Is a directory\n", directory);
        expect_run(arguments, 1, "", err);
        EXPECT_EQ(count_files("preload"), 1);
        EXPECT_EQ(count_files("preload/app.tar"), 0);
        stop_http_server();
}

static char *list_empty_store(void) {
        cleanup_free char *path = path_join(test_directory(), "store");

        return text_format("{\"store\":\"%s\",\"images\":["
                           "{\"names\":[\"mirror.example/library/app:1\"]}]}",
                           path);
}

TEST(export_and_diff_keep_an_existing_file_if_they_fail)
{
        cleanup_free char *backup = write_test_file("backup.tar", "backup");
        cleanup_free char *arguments = text_format("images export app:1 %s", backup);
        size_t n = count_files("");

        start_http_server();
        fake_agent.images = list_empty_store;
        expect_run(arguments, 1, "", "image 'app:1' is not in the store\n");
        free(arguments);
        arguments = text_format("images diff app:1 app:2 %s", backup);
        REQUIRE(arguments);
        expect_run(arguments, 1, "", "app:1: the image is not in the store\n");
        expect_file("backup.tar", "backup");
        stop_http_server();
        EXPECT_EQ(count_files(""), n + 1); /* the store */
}

/* The pull of another image whose name contains the requested one is newer. */
static char *list_pulls(void) {
        return strdup("{\"pulls\":["
                      "{\"reference\":\"docker.io/library/app:10\",\"isEnded\":true,"
                      "\"error\":\"another image\"},"
                      "{\"reference\":\"docker.io/library/app:1\",\"isEnded\":true,"
                      "\"digest\":\"sha256:1\"}]}");
}

TEST(pull_reports_the_image_with_any_spelling_of_its_name)
{
        static const char *const spellings[] = { "app:1", "library/app:1", "docker.io/app:1",
                                                 "docker.io/library/app:1" };

        start_http_server();
        fake_agent.images = list_pulls;
        for (size_t i = 0; i < N_ELEMENTS(spellings); i++) {
                cleanup_free char *arguments = text_format("images pull %s", spellings[i]);

                expect_run(arguments, 0, "sha256:1\n", "");
                EXPECT_STREQ(fake_agent.pulled, "docker.io/library/app:1");
        }
        stop_http_server();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/store/store.h"

#include "agent/image-helper/store/store-remove.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/failing-readdir.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#define LAYER "1111111111111111111111111111111111111111111111111111111111111111"

/* A store with one image: a record with a layer, a manifest with a configuration, a name. */
typedef struct TestStore {
        Store *store;
        char manifest[DIGEST_SIZE], config[DIGEST_SIZE];
        char record_path[128], manifest_path[128], config_path[128];
} TestStore;

static void put_blob(TestStore *test, const char *text, char digest[static DIGEST_SIZE],
                     char path[static 128]) {
        digest_of(text, strlen(text), digest);
        (void) snprintf(path, 128, "blobs/sha256/%s", digest_hex(digest));
        REQUIRE(write_file_atomic_at(store_fd(test->store), path, text, strlen(text), 0600) == 0);
}

static void put_image(TestStore *test) {
        cleanup_free char *manifest = NULL;
        char *names[] = { (char[]){ "app:1" }, NULL };

        put_blob(test, "{\"a\":1}", test->config, test->config_path);
        REQUIRE(asprintf(&manifest, "{\"config\":{\"digest\":\"%s\"},\"layers\":[]}",
                         test->config) > 0);
        put_blob(test, manifest, test->manifest, test->manifest_path);
        (void) snprintf(test->record_path, sizeof(test->record_path), "records/%s.json",
                        digest_hex(test->config));
        REQUIRE(checksummed_write_at(store_fd(test->store), test->record_path,
                                     "{\"layers\":[\"" LAYER "\"]}", 0600) == 0);
        REQUIRE(mkdirat(store_fd(test->store), "layers/" LAYER, 0700) == 0);
        REQUIRE(store_tag_image(test->store,
                                &(StoreEntry){ .media_type = "m",
                                               .manifest_digest = test->manifest,
                                               .manifest_size = strlen(manifest),
                                               .image_digest = test->config,
                                               .names = names },
                                NULL) == 0);
}

static void open_test_store(TestStore *test) {
        cleanup_free char *path = path_join(test_directory(), "store");

        *test = (TestStore){ 0 };
        REQUIRE(store_open(path, &test->store, NULL) == 0);
        put_image(test);
}

static bool has_stored(const TestStore *test, const char *path) {
        return faccessat(store_fd(test->store), path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void expect_whole_image(const TestStore *test) {
        EXPECT(has_stored(test, "layers/" LAYER));
        EXPECT(has_stored(test, test->record_path));
        EXPECT(has_stored(test, test->manifest_path));
        EXPECT(has_stored(test, test->config_path));
        EXPECT(has_stored(test, "index.json"));
}

static void put_file(const TestStore *test, const char *path, const char *text) {
        int fd = store_fd(test->store);

        REQUIRE(unlinkat(fd, path, 0) == 0);
        REQUIRE(write_file_atomic_at(fd, path, text, strlen(text), 0600) == 0);
}

/* A regular file that can be opened, but whose reads fail with EIO. */
static void make_unreadable(const TestStore *test, const char *path) {
        REQUIRE(unlinkat(store_fd(test->store), path, 0) == 0);
        REQUIRE(symlinkat("/proc/self/mem", store_fd(test->store), path) == 0);
}

TEST(unreferenced_content_is_swept)
{
        char digest[DIGEST_SIZE], path[128];
        TestStore test;

        open_test_store(&test);
        put_blob(&test, "surplus", digest, path);
        REQUIRE(mkdirat(store_fd(test.store), "layers/surplus", 0700) == 0);
        EXPECT_EQ(store_remove_images(test.store, NULL, NULL), 0);
        EXPECT(!has_stored(&test, path));
        EXPECT(!has_stored(&test, "layers/surplus"));
        expect_whole_image(&test);
        store_free(test.store);
}

TEST(a_record_that_cannot_be_read_stops_the_sweep)
{
        TestStore test;

        open_test_store(&test);
        make_unreadable(&test, test.record_path);
        EXPECT_EQ(store_remove_images(test.store, NULL, NULL), -EIO);
        expect_whole_image(&test);
        EXPECT_EQ(store_verify_blobs(test.store, NULL), -EIO);
        store_free(test.store);
}

TEST(a_damaged_record_keeps_no_content_from_the_sweep)
{
        TestStore test;

        open_test_store(&test);
        put_file(&test, test.record_path, "{}");
        EXPECT_EQ(store_remove_images(test.store, NULL, NULL), 0);
        EXPECT(!has_stored(&test, "layers/" LAYER));
        store_free(test.store);
}

TEST(a_manifest_that_cannot_be_read_stops_the_sweep)
{
        TestStore test;

        open_test_store(&test);
        make_unreadable(&test, test.manifest_path);
        EXPECT_EQ(store_remove_images(test.store, NULL, NULL), -EIO);
        expect_whole_image(&test);
        store_free(test.store);
}

TEST(a_damaged_manifest_keeps_no_blobs_from_the_sweep)
{
        TestStore test;

        open_test_store(&test);
        put_file(&test, test.manifest_path, "{}");
        EXPECT_EQ(store_remove_images(test.store, NULL, NULL), 0);
        EXPECT(has_stored(&test, test.manifest_path));
        store_free(test.store);
}

TEST(an_index_that_cannot_be_read_stops_the_removal_and_stays)
{
        cleanup_error Error error = ERROR_NULL;
        TestStore test;

        open_test_store(&test);
        make_unreadable(&test, "index.json");
        EXPECT_EQ(store_remove_images(test.store, NULL, &error), -EIO);
        EXPECT_STREQ(error.message, "image store: index.json: Input/output error");
        expect_whole_image(&test);
        EXPECT(!has_stored(&test, "index.json.damaged"));
        store_free(test.store);
}

TEST(a_damaged_index_is_set_aside)
{
        static const char *const texts[] = { "{", "{}", "{\"manifests\":{}}" };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                TestStore test;

                open_test_store(&test);
                put_file(&test, "index.json", texts[i]);
                EXPECT_EQ(store_remove_images(test.store, NULL, NULL), 0);
                EXPECT(has_stored(&test, "index.json.damaged"));
                EXPECT(has_stored(&test, "index.json"));
                EXPECT(has_stored(&test, "layers/" LAYER));
                store_free(test.store);
                REQUIRE(remove_contents_at(AT_FDCWD, test_directory()) == 0);
        }
}

TEST(a_directory_that_cannot_be_listed_stops_the_sweep)
{
        int r = -EIO;

        for (int n = 0; r < 0 && n < 100; n++) {
                TestStore test;

                open_test_store(&test);
                readdir_calls_left = n;
                readdir_has_failed = false;
                r = store_remove_images(test.store, NULL, NULL);
                EXPECT_EQ(r, readdir_has_failed ? -EIO : 0);
                readdir_calls_left = -1;
                expect_whole_image(&test);
                store_free(test.store);
                REQUIRE(remove_contents_at(AT_FDCWD, test_directory()) == 0);
        }
        EXPECT_EQ(r, 0);
}

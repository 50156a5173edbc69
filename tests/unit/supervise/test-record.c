/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/record.h"

#include "agent/manifest/manifest.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char manifest[] =
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata: {name: web, labels: {a: b}}\n"
        "spec:\n"
        "  hostNetwork: true\n"
        "  containers: [{name: c, image: 'busybox:1', command: [\"sleep\", \"1\"]}]\n";

static Pod *parse(ManifestObjects *objects) {
        REQUIRE(manifest_parse("web.yaml", manifest, strlen(manifest), "n", objects, NULL) >= 0);
        REQUIRE(objects->pods.n == 1);
        return objects->pods.items[0];
}

static char *record_path(const char *uid) {
        char *path;

        REQUIRE(asprintf(&path, "%s/pods/%s/record", test_directory(), uid) > 0);
        return path;
}

TEST(a_record_comes_back_as_it_was)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse(&objects);
        cleanup_with(pod_freep) Pod *loaded = NULL;
        cleanup_free char *file = NULL, *path = record_path(pod->metadata.uid);
        struct stat st;

        EXPECT_EQ(record_store(test_directory(), "a\nfile.yaml", pod, NULL), 0);
        REQUIRE(record_load(test_directory(), pod->metadata.uid, &file, &loaded, NULL) == 0);
        EXPECT_STREQ(file, "a\nfile.yaml");
        EXPECT(schema_equal(&pod_schema, pod, loaded));
        EXPECT(stat(path, &st) >= 0 && (st.st_mode & 0777) == 0600);
        EXPECT_EQ(record_load(test_directory(), "nobody", &file, &loaded, NULL), -ENOENT);
}

/* Damages the record at 'offset' (or cuts it there) and expects that it is not believed. */
static void expect_refused(const char *uid, const char *good, size_t length, size_t offset,
                           bool cut) {
        cleanup_free char *path = record_path(uid), *file = NULL, *damaged = malloc(length);
        cleanup_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        cleanup_error Error error = ERROR_NULL;
        Pod *pod = NULL;
        int r;

        REQUIRE(fd >= 0 && damaged);
        memcpy(damaged, good, length);
        damaged[offset] ^= 1;
        REQUIRE(write_all(fd, damaged, cut ? offset : length) >= 0);
        r = record_load(test_directory(), uid, &file, &pod, &error);
        if (r != -EBADMSG)
                test_fail(__FILE__, __LINE__, cut ? "cut" : "flipped", "at %zu gives %d", offset,
                          r);
        pod_free(pod);
}

TEST(a_record_that_was_cut_or_flipped_anywhere_is_not_believed)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid), *good = NULL;
        size_t length;

        REQUIRE(record_store(test_directory(), "web.yaml", pod, NULL) >= 0);
        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &good, &length) >= 0);
        for (size_t offset = 0; offset < length; offset++) {
                expect_refused(pod->metadata.uid, good, length, offset, false);
                expect_refused(pod->metadata.uid, good, length, offset, true);
        }
}

TEST(what_lies_in_the_place_of_a_record_is_set_aside_or_named)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid), *file = NULL, *aside = NULL;
        cleanup_error Error error = ERROR_NULL;
        Pod *loaded = NULL;

        REQUIRE(record_store(test_directory(), "web.yaml", pod, NULL) >= 0);
        REQUIRE(unlink(path) >= 0 && mkfifo(path, 0600) >= 0);
        EXPECT_EQ(record_load(test_directory(), pod->metadata.uid, &file, &loaded, &error),
                  -EBADMSG);
        EXPECT(error.message && strstr(error.message, path));
        EXPECT_EQ(record_set_aside(test_directory(), pod->metadata.uid, NULL), 0);
        REQUIRE(asprintf(&aside, "%s/corrupt/%s.0", test_directory(), pod->metadata.uid) > 0);
        EXPECT(access(aside, F_OK) >= 0);
        EXPECT(access(path, F_OK) < 0);
}

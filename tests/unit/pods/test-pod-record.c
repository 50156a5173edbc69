/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/manager/pod-record.h"

#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "agent/model/schema.h"
#include "common/checksummed.h"
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

static const char web[] = "web.yaml";

static Pod *parse_manifest(ManifestObjects *objects) {
        REQUIRE(manifest_parse("web.yaml", manifest, strlen(manifest), "n", objects, NULL) >= 0);
        REQUIRE(objects->pods.n == 1);
        return objects->pods.items[0];
}

static char *record_path(const char *uid) {
        char *path;

        REQUIRE(asprintf(&path, "%s/pods/%s/record", test_directory(), uid) > 0);
        return path;
}

TEST(a_stored_record_is_loaded_unchanged)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse_manifest(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid);
        cleanup_with(pod_record_done) PodRecord loaded = { 0 };
        const PodSource source = pod_source_of_file("a\nfile.yaml");
        char outdated[] = "c 3";
        struct stat st;

        EXPECT_EQ(pod_record_store(test_directory(), &(PodRecord){ source, pod, outdated }, NULL),
                  0);
        REQUIRE(pod_record_load(test_directory(), pod->metadata.uid, &loaded, NULL) == 0);
        EXPECT(pod_sources_equal(&loaded.source, &source));
        EXPECT_STREQ(loaded.outdated, "c 3");
        EXPECT(schema_equal(&pod_schema, pod, loaded.pod));
        EXPECT(stat(path, &st) >= 0 && (st.st_mode & 0777) == 0600);
        EXPECT_EQ(pod_record_load(test_directory(), "missing", &loaded, NULL), -ENOENT);
}

TEST(record_that_could_not_be_loaded_is_not_written)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse_manifest(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid);
        const PodSource source = pod_source_of_file(web);
        cleanup_error Error error = ERROR_NULL;
        char *large = malloc(17 * MIB), **argument = &pod->spec.containers.items[0].command[1];

        REQUIRE(large);
        memset(large, 'x', 17 * MIB - 1);
        large[17 * MIB - 1] = '\0';
        free(*argument);
        *argument = large;
        (void) unlink(path);
        EXPECT_EQ(pod_record_store(test_directory(), &(PodRecord){ source, pod, NULL }, &error),
                  -E2BIG);
        EXPECT_STREQ(error.message, "the record of pod web-n would be larger than 16 MiB");
        EXPECT(access(path, F_OK) < 0);
}

TEST(a_record_of_the_first_version_is_read)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        const Pod *pod = parse_manifest(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid), *json = pod_to_json(pod, NULL);
        cleanup_free char *text = NULL;
        cleanup_with(pod_record_done) PodRecord loaded = { 0 };
        cleanup_close int fd = -EBADF;

        path[strlen(path) - strlen("/record")] = '\0';
        REQUIRE(mkdir_parents_at(AT_FDCWD, path, 0700) >= 0);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(asprintf(&text, "mainstay-record 1\n%s\nweb.yaml\n", json) > 0);
        REQUIRE(fd >= 0 && checksummed_write_at(fd, "record", text, 0600) >= 0);
        REQUIRE(pod_record_load(test_directory(), pod->metadata.uid, &loaded, NULL) == 0);
        EXPECT_STREQ(pod_source_format(&loaded.source), "web.yaml");
        EXPECT(!loaded.outdated);
        EXPECT(schema_equal(&pod_schema, pod, loaded.pod));
}

/* Damages the record at 'offset', or cuts it there, and expects that it is refused. */
static void expect_refused(const char *uid, const char *good, size_t length, size_t offset,
                           bool cut) {
        cleanup_free char *path = record_path(uid), *damaged = malloc(length);
        cleanup_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_record_done) PodRecord record = { 0 };
        int r;

        REQUIRE(fd >= 0 && damaged);
        memcpy(damaged, good, length);
        damaged[offset] ^= 1;
        REQUIRE(write_all(fd, damaged, cut ? offset : length) >= 0);
        r = pod_record_load(test_directory(), uid, &record, &error);
        if (r != -EBADMSG)
                test_fail(__FILE__, __LINE__, cut ? "cut" : "flipped", "at %zu gives %d", offset,
                          r);
}

TEST(a_truncated_or_corrupted_record_is_rejected)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse_manifest(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid), *good = NULL;
        size_t length;

        REQUIRE(pod_record_store(test_directory(),
                                 &(PodRecord){ pod_source_of_file(web), pod, NULL }, NULL) >= 0);
        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &good, &length) >= 0);
        for (size_t offset = 0; offset < length; offset++) {
                expect_refused(pod->metadata.uid, good, length, offset, false);
                expect_refused(pod->metadata.uid, good, length, offset, true);
        }
}

TEST(a_record_that_cannot_be_read_is_not_damaged)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse_manifest(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid), *expected = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_record_done) PodRecord loaded = { 0 };

        REQUIRE(pod_record_store(test_directory(),
                                 &(PodRecord){ pod_source_of_file(web), pod, NULL }, NULL) >= 0);
        REQUIRE(unlink(path) >= 0 && symlink("/proc/self/mem", path) >= 0); /* read() gives EIO */
        EXPECT_EQ(pod_record_load(test_directory(), pod->metadata.uid, &loaded, &error), -EIO);
        REQUIRE(asprintf(&expected, "%s: cannot be read: Input/output error", path) > 0);
        EXPECT_STREQ(error.message, expected);
        REQUIRE(unlink(path) >= 0);
}

TEST(a_file_that_is_not_a_record_is_set_aside_or_reported)
{
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        Pod *pod = parse_manifest(&objects);
        cleanup_free char *path = record_path(pod->metadata.uid), *aside = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(pod_record_done) PodRecord loaded = { 0 };

        REQUIRE(pod_record_store(test_directory(),
                                 &(PodRecord){ pod_source_of_file(web), pod, NULL }, NULL) >= 0);
        REQUIRE(unlink(path) >= 0 && mkfifo(path, 0600) >= 0);
        EXPECT_EQ(pod_record_load(test_directory(), pod->metadata.uid, &loaded, &error), -EBADMSG);
        EXPECT(error.message && strstr(error.message, path));
        EXPECT_EQ(pod_record_set_aside(test_directory(), pod->metadata.uid, NULL), 0);
        REQUIRE(asprintf(&aside, "%s/corrupt/%s.0", test_directory(), pod->metadata.uid) > 0);
        EXPECT(access(aside, F_OK) >= 0);
        EXPECT(access(path, F_OK) < 0);
}

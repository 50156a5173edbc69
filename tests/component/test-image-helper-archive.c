/* SPDX-License-Identifier: Apache-2.0 */

/* mainstay-image from the build directory is run on all kinds of archives: valid ones with each
 * compression, and damaged, contradictory and invalid ones. */

#include "tests/component/image-world.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/file.h>

static char output[HELPER_TEXT_MAX], error[HELPER_TEXT_MAX];

static int index_archive(const char *archive) {
        cleanup_free char *store = in_test_directory("store");

        return run_program((char *[]){ helper_path(), (char[]){ "index" }, (char[]){ "--store" },
                                       store, (char *) (uintptr_t) archive, NULL },
                           output, error);
}

static int unpack_archive(const char *archive, const char *digest, const char *name) {
        cleanup_free char *store = in_test_directory("store"), *digest_option = NULL;
        cleanup_free char *name_option = NULL;

        REQUIRE(asprintf(&digest_option, "--digest=%s", digest) > 0);
        REQUIRE(asprintf(&name_option, "--name=%s", name) > 0);
        return run_program((char *[]){ helper_path(), (char[]){ "unpack" }, (char[]){ "--store" },
                                       store, digest_option, name_option,
                                       (char *) (uintptr_t) archive, NULL },
                           output, error);
}

static bool store_has(const char *format, ...) printf_like(1, 2);
static bool store_has(const char *format, ...) {
        cleanup_free char *store = in_test_directory("store"), *path = NULL, *name = NULL;
        va_list ap;

        va_start(ap, format);
        REQUIRE(vasprintf(&name, format, ap) >= 0);
        va_end(ap);
        path = path_join(store, name);
        return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

static unsigned count_in_store(const char *name) {
        cleanup_free char *store = in_test_directory("store"), *path = path_join(store, name);
        cleanup_closedir DIR *dir = opendir(path);
        const struct dirent *entry;
        unsigned n = 0;

        while (dir && (entry = readdir(dir)))
                n += entry->d_name[0] != '.';
        return n;
}

/* After a failure there is no layer, no record, no name and no partial file. */
static void expect_empty_store(const char *what) {
        static const char *const names[] = { "tmp", "layers", "records", "blobs/sha256" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                if (count_in_store(names[i]) > 0)
                        test_fail(__FILE__, __LINE__, what, "leaves something in '%s'", names[i]);
        EXPECT(!store_has("index.json"));
}

/* The message is one line and contains this text. */
static void expect_message(const char *what, const char *part) {
        const char *newline = strchr(error, '\n');

        if (!strstr(error, part) || !newline || newline[1] != '\0')
                test_fail(__FILE__, __LINE__, what, "the message is '%s', not '%s'", error, part);
}

static Tar small_layer(const char *content) {
        return tar_of(
                (TarEntry[]){ { .name = "etc", .type = '5' },
                              { .name = "etc/passwd", .data = "app:x:1000:1001::/:/bin/sh\n" },
                              { .name = "etc/group", .data = "app:x:1001:\nmore:x:7:app\n" },
                              { .name = "content", .data = content },
                              { 0 } });
}

static void make_busybox(const char *path, const char *format, const char *compress) {
        REQUIRE(run_program((char *[]){ (char[]){ "/usr/bin/python3" },
                                        (char[]){ SOURCE_DIR "/tests/make-image" },
                                        (char[]){ "example.com/busybox:1" },
                                        (char *) (uintptr_t) path, (char[]){ "--format" },
                                        (char *) (uintptr_t) format, (char[]){ "--compress" },
                                        (char *) (uintptr_t) compress, NULL },
                            NULL, NULL) == 0);
}

/* The first digest that the index printed. */
static void first_digest(char ret[80]) {
        const char *p = strstr(output, "\"digest\":\"");

        REQUIRE(p);
        (void) snprintf(ret, 80, "%.71s", p + strlen("\"digest\":\""));
}

TEST(every_compression_of_an_image_is_read_and_its_layer_unpacked_once)
{
        static const char *const formats[] = { "oci", "docker" };
        static const char *const packings[] = { "none", "gzip", "zstd" };

        for (size_t i = 0; i < N_ELEMENTS(formats) * N_ELEMENTS(packings); i++) {
                cleanup_free char *archive = in_test_directory("busybox.tar");
                char digest[80];

                make_busybox(archive, formats[i / 3], packings[i % 3]);
                EXPECT_EQ(index_archive(archive), 0);
                EXPECT(strstr(output, "\"names\":[\"example.com/busybox:1\"]"));
                EXPECT(!strstr(output, "refusal"));
                first_digest(digest);
                EXPECT_EQ(unpack_archive(archive, digest, "example.com/busybox:1"), 0);
                EXPECT_STREQ(error, "");
                EXPECT(store_has("records/%s.json", digest + 7));
                /* All six hold the same layer. */
                EXPECT_EQ(count_in_store("layers"), 1);
                EXPECT_EQ(count_in_store("tmp"), 0);
        }
}

TEST(the_store_is_an_image_layout_that_skopeo_reads)
{
        cleanup_free char *archive = in_test_directory("busybox.tar"), *image = NULL;
        char digest[80];

        make_busybox(archive, "oci", "gzip");
        EXPECT_EQ(index_archive(archive), 0);
        first_digest(digest);
        EXPECT_EQ(unpack_archive(archive, digest, "example.com/busybox:1"), 0);
        REQUIRE(asprintf(&image, "oci:%s/store:example.com/busybox:1", test_directory()) > 0);
        EXPECT_EQ(run_program((char *[]){ (char[]){ "skopeo" }, (char[]){ "inspect" },
                                          (char[]){ "--raw" }, image, NULL },
                              output, error),
                  0);
        EXPECT(strstr(output, "application/vnd.oci.image.layer.v1.tar+gzip"));
        {
                char got[80];

                digest_text(output, strlen(output), got);
                EXPECT_STREQ(got, digest);
        }
}

TEST(a_name_refers_to_the_image_that_was_imported_last)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *path = NULL, *index = NULL;
        char digests[2][80];

        for (size_t i = 0; i < 2; i++) {
                Tar layer = small_layer(i ? "new" : "old");

                write_oci_archive(archive, &(TestImage){ "app:1", &layer, 1, NULL, NULL },
                                  digests[i]);
                EXPECT_EQ(unpack_archive(archive, digests[i], "docker.io/library/app:1"), 0);
                tar_done(&layer);
        }
        path = in_test_directory("store/index.json");
        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &index, NULL) >= 0);
        EXPECT(strstr(index, digests[1]));
        EXPECT(!strstr(index, digests[0]));
        /* The record stays: a pod with its own user can run the image. */
        EXPECT(store_has("records/%s.json", digests[0] + 7));
}

TEST(a_record_contains_everything_that_is_needed_to_run_the_image)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *path = NULL, *text = NULL;
        Tar layers[2] = { small_layer("x"),
                          tar_of((TarEntry[]){ { .name = "y", .data = "y" }, { 0 } }) };
        char digest[80];

        write_oci_archive(archive,
                          &(TestImage){ "app", layers, 2,
                                        "{\"User\":\"app\",\"Cmd\":[\"run\"],\"Env\":[\"A=b\"],"
                                        "\"WorkingDir\":\"/w\",\"StopSignal\":\"2\"}",
                                        NULL },
                          digest);
        EXPECT_EQ(unpack_archive(archive, digest, "docker.io/library/app:latest"), 0);
        REQUIRE(asprintf(&path, "%s/store/records/%s.json", test_directory(), digest + 7) > 0);
        REQUIRE(read_file_at(AT_FDCWD, path, MIB, &text, NULL) >= 0);
        EXPECT(strstr(
                text,
                "\"entrypoint\":[],\"command\":[\"run\"],\"env\":[\"A=b\"],"
                "\"volumes\":[],\"workingDir\":\"/w\",\"stopSignal\":\"SIGINT\",\"user\":\"app\","
                "\"uid\":1000,\"gid\":1001,\"size\":"));
        EXPECT(strstr(text, "\"groups\":[7]"));
        EXPECT_EQ(count_in_store("layers"), 2);
        tar_done(&layers[0]);
        tar_done(&layers[1]);
}

TEST(a_user_is_looked_up_in_regular_files_only)
{
        static const struct {
                TarEntry entries[2];
                const char *error;
        } odd[] = {
                { { { .name = "etc/passwd", .type = '2', .link = "/etc/passwd" } },
                  "/etc/passwd cannot be resolved: Too many levels of symbolic links" },
                { { { .name = "etc/passwd", .type = '6' } }, "/etc/passwd is not a regular file" },
                { { { .name = "etc/passwd", .type = '5' } }, "/etc/passwd is not a regular file" },
                { { { .name = "etc", .type = '2', .link = "/etc" } },
                  "/etc/passwd cannot be resolved: Too many levels of symbolic links" },
                { { { .name = "etc", .data = "x" } },
                  "/etc/passwd cannot be resolved: Not a directory" },
        };

        for (size_t i = 0; i < N_ELEMENTS(odd); i++) {
                cleanup_free char *archive = in_test_directory("image.tar"), *path = NULL;
                cleanup_free char *text = NULL;
                Tar layer = tar_of(odd[i].entries);
                char digest[80];

                write_oci_archive(archive,
                                  &(TestImage){ "app", &layer, 1, "{\"User\":\"root\"}", NULL },
                                  digest);
                EXPECT_EQ(unpack_archive(archive, digest, "docker.io/library/app:latest"), 0);
                REQUIRE(asprintf(&path, "%s/store/records/%s.json", test_directory(), digest + 7) >
                        0);
                REQUIRE(read_file_at(AT_FDCWD, path, MIB, &text, NULL) >= 0);
                EXPECT(strstr(text, "\"userError\":\"the image's "));
                EXPECT(strstr(text, odd[i].error));
                tar_done(&layer);
        }
}

TEST(a_damaged_archive_is_refused_and_leaves_nothing_behind)
{
        static const char *const packings[] = { "none", "gzip", "zstd" };

        for (size_t i = 0; i < 2 * N_ELEMENTS(packings); i++) {
                cleanup_free char *archive = in_test_directory("busybox.tar"), *bytes = NULL;
                bool docker = i % 2;
                size_t length;
                char digest[80];

                make_busybox(archive, docker ? "docker" : "oci", packings[i / 2]);
                REQUIRE(index_archive(archive) == 0);
                first_digest(digest);
                REQUIRE(read_file_at(AT_FDCWD, archive, 16 * MIB, &bytes, &length) >= 0);
                for (size_t at = 1; at < 8; at++) {
                        size_t place = length / 8 * at;
                        int status;

                        bytes[place] = (char) (bytes[place] ^ 0x10);
                        write_file(archive, bytes, length);
                        bytes[place] = (char) (bytes[place] ^ 0x10);
                        status = unpack_archive(archive, digest, "x");
                        EXPECT_EQ(status, 1);
                        if (status == 1)
                                expect_message("a flipped bit", "");
                        expect_empty_store("a flipped bit");

                        write_file(archive, bytes, place);
                        EXPECT_EQ(unpack_archive(archive, digest, "x"), 1);
                        expect_empty_store("a cut");
                }
        }
}

/* A small archive is cut at every block, and bits are flipped in every block. */
TEST(a_small_archive_is_refused_wherever_it_is_damaged)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *bytes = NULL;
        Tar layer = small_layer("x");
        size_t length, used;
        char digest[80];

        write_docker_archive(archive, &(TestImage){ "app", &layer, 1, NULL, NULL }, digest);
        REQUIRE(read_file_at(AT_FDCWD, archive, MIB, &bytes, &length) >= 0);
        used = length - (size_t) TAR_BLOCK * 2;
        for (size_t place = 0; place < used; place += TAR_BLOCK) {
                write_file(archive, bytes, place);
                EXPECT_EQ(unpack_archive(archive, digest, "x"), 1);
                expect_empty_store("a cut");
        }
        tar_done(&layer);
}

TEST(an_invalid_image_archive_is_refused_with_a_reason)
{
        static const struct {
                const char *what, *message;
                TarEntry entries[4];
        } cases[] = {
                { "an empty tar", "it is empty", { { 0 } } },
                { "a tar of something else",
                  "is not an image archive",
                  { { .name = "x", .data = "x" } } },
                { "an index without a layout",
                  "is not an image archive",
                  { { .name = "index.json", .data = "{}" } } },
                { "a layout of another version",
                  "layout version '2.0' is unknown",
                  { { .name = "oci-layout", .data = "{\"imageLayoutVersion\":\"2.0\"}" },
                    { .name = "index.json", .data = "{}" } } },
                { "list of manifests is missing",
                  "list of manifests is missing",
                  { { .name = "oci-layout", .data = "{\"imageLayoutVersion\":\"1.0.0\"}" },
                    { .name = "index.json", .data = "{\"schemaVersion\":2}" } } },
                { "an index that is a manifest too",
                  "both manifests and layers",
                  { { .name = "oci-layout", .data = "{\"imageLayoutVersion\":\"1.0.0\"}" },
                    { .name = "index.json",
                      .data = "{\"schemaVersion\":2,\"manifests\":[],\"layers\":[]}" } } },
                { "an index of nothing",
                  "contains no image",
                  { { .name = "oci-layout", .data = "{\"imageLayoutVersion\":\"1.0.0\"}" },
                    { .name = "index.json", .data = "{\"schemaVersion\":2,\"manifests\":[]}" } } },
                { "a digest that is a path",
                  "is not a sha256 digest",
                  { { .name = "oci-layout", .data = "{\"imageLayoutVersion\":\"1.0.0\"}" },
                    { .name = "index.json",
                      .data = "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
                              "\"application/vnd.oci.image.manifest.v1+json\",\"size\":1,"
                              "\"digest\":\"sha256:../../../../etc/passwd\"}]}" } } },
                { "a manifest.json that is invalid JSON",
                  "manifest.json: line 1",
                  { { .name = "manifest.json", .data = "[{" } } },
                { "a manifest.json that is an object",
                  "it is not a list",
                  { { .name = "manifest.json", .data = "{}" } } },
                { "a key that stands twice",
                  "duplicate object key",
                  { { .name = "manifest.json",
                      .data = "[{\"Config\":\"a\",\"Config\":\"b\"}]" } } },
                { "no configuration",
                  "without 'Config'",
                  { { .name = "manifest.json", .data = "[{}]" } } },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *archive = in_test_directory("image.tar");
                Tar tar = tar_of(cases[i].entries);

                write_file(archive, tar.data, tar.length);
                EXPECT_EQ(index_archive(archive), 1);
                expect_message(cases[i].what, cases[i].message);
                tar_done(&tar);
        }
}

TEST(an_invalid_tar_is_refused_with_a_reason)
{
        cleanup_free char *archive = in_test_directory("image.tar");
        cleanup_free char *fifo = in_test_directory("fifo");

        write_file(archive, "", 0);
        EXPECT_EQ(index_archive(archive), 1);
        write_file(archive, "This is a text and no tar.\n", 27);
        EXPECT_EQ(index_archive(archive), 1);
        expect_message("a text", "");
        REQUIRE(mkfifo(fifo, 0600) >= 0);
        EXPECT_EQ(index_archive(fifo), 1);
        expect_message("a FIFO", "is not a regular file");
        EXPECT_EQ(index_archive(test_directory()), 1);
        expect_message("a directory", "is not a regular file");
        EXPECT_EQ(index_archive("/does/not/exist"), 1);
        expect_message("nothing", "cannot be opened: No such file or directory");
}

TEST(an_invalid_image_does_not_prevent_the_import_of_others)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *index = NULL;
        static const char type[] = "application/vnd.oci.image.manifest.v1+json";
        Tar layer = small_layer("x");
        Layout layout = { 0 };
        char digests[2][80];

        append_text(&index, "{\"schemaVersion\":2,\"manifests\":[");
        for (size_t i = 0; i < 2; i++) {
                layout_add_image(&layout, &(TestImage){ NULL, &layer, 1, NULL,
                                                        i == 0 ? "pdp11" : test_architecture() });
                memcpy(digests[i], layout.last, sizeof(digests[i]));
                append_text(&index,
                            "{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu,\"annotations\":{"
                            "\"org.opencontainers.image.ref.name\":\"app:%zu\"}},",
                            type, layout.last, layout.last_length, i);
        }
        /* The manifest of the image is missing from the archive. */
        append_text(&index, "{\"mediaType\":\"%s\",\"digest\":\"sha256:%064d\",\"size\":7}]}", type,
                    7);
        layout_end(&layout, index, archive);
        EXPECT_EQ(index_archive(archive), 0);
        EXPECT(strstr(output,
                      "\"refusal\":\"the image is for linux/pdp11, this machine is linux/"));
        EXPECT(strstr(output, "\"refusal\":\"'blobs/sha256/000000"));
        EXPECT_EQ(unpack_archive(archive, digests[0], "app:0"), 1);
        expect_message("another machine's image", "the image is for linux/pdp11");
        expect_empty_store("another machine's image");
        EXPECT_EQ(unpack_archive(archive, digests[1], "app:1"), 0);
        tar_done(&layer);
}

/* Half a character in an error message would make the JSON of the index or of a record invalid. */
TEST(untrusted_names_are_quoted_on_one_line_of_utf8)
{
        static const struct {
                const char *process, *entry, *part;
                int status;
        } cases[] = {
                { .entry = "a\nforged: line\033[31m/../../x",
                  .part = "a forged: line?[31m/../../x' leaves the top",
                  .status = 1 },
                { .entry = "a\xff/../../x", .part = "a?/../../x' leaves", .status = 1 },
                { .process = "{\"WorkingDir\":\"/proc/a\\nforged\"}",
                  .part = "the working directory '/proc/a forged' is refused",
                  .status = 1 },
                { .process = "{\"User\":\"123456789012345678901234567890123456789012345678901234"
                             "567890123\xc3\xa9 and more\"}",
                  .part = "" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *archive = in_test_directory("image.tar");
                const char *entry = cases[i].entry ? cases[i].entry : "a";
                Tar layer = tar_of((TarEntry[]){ { .name = entry, .data = "x" }, { 0 } });
                TestImage image = { "x:1", &layer, 1, .process = cases[i].process };
                char digest[80];

                write_oci_archive(archive, &image, digest);
                tar_done(&layer);
                EXPECT_EQ(index_archive(archive), 0);
                EXPECT_EQ(unpack_archive(archive, digest, "x:1"), cases[i].status);
                if (cases[i].status == 0)
                        EXPECT(store_has("records/%s.json", digest + 7));
                else
                        expect_message(cases[i].part, cases[i].part);
                EXPECT_EQ(count_in_store("tmp"), 0);
        }
}

/* A document of a megabyte must not take minutes of processor time. */
TEST(lists_that_are_too_long_are_refused)
{
        static const struct {
                const char *start, *item, *end, *part;
                size_t n;
        } cases[] = {
                { "[{}", ",{\"Config\":\"c\"}", "]", "more than 256 images", 5000 },
                { "[{\"Config\":\"c\",\"Layers\":[\"\"", ",\"\"", "]}]", "'Layers' is too long",
                  300000 },
                { "[{\"Config\":\"c\",\"RepoTags\":[\"\"", ",\"\"", "]}]", "'RepoTags' is too long",
                  300000 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *archive = in_test_directory("image.tar");
                size_t start = strlen(cases[i].start), item = strlen(cases[i].item);
                size_t length = start + cases[i].n * item + strlen(cases[i].end);
                cleanup_free char *text = malloc(length + 1);
                Tar tar;

                REQUIRE(text);
                memcpy(text, cases[i].start, start + 1);
                for (size_t j = 0; j < cases[i].n; j++)
                        memcpy(text + start + j * item, cases[i].item, item);
                memcpy(text + start + cases[i].n * item, cases[i].end, strlen(cases[i].end) + 1);
                tar = tar_of((TarEntry[]){ { .name = "manifest.json", .data = text }, { 0 } });
                write_file(archive, tar.data, tar.length);
                tar_done(&tar);
                if (index_archive(archive) == 0)
                        EXPECT(strstr(output, cases[i].part));
                else
                        expect_message(cases[i].part, cases[i].part);
        }
}

TEST(an_index_of_several_platforms_selects_the_image_for_this_machine)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *list = NULL, *index = NULL;
        static const char type[] = "application/vnd.oci.image.manifest.v1+json";
        const char *architectures[] = { "pdp11", test_architecture() };
        Tar layers[2] = { small_layer("pdp11"), small_layer("here") };
        Layout layout = { 0 };
        char digests[2][80];

        append_text(&list, "{\"schemaVersion\":2,\"manifests\":[");
        for (size_t i = 0; i < 2; i++) {
                layout_add_image(&layout,
                                 &(TestImage){ NULL, &layers[i], 1, NULL, architectures[i] });
                memcpy(digests[i], layout.last, sizeof(digests[i]));
                append_text(&list,
                            "%s{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu,\"platform\":{"
                            "\"os\":\"linux\",\"architecture\":\"%s\"}}",
                            i ? "," : "", type, layout.last, layout.last_length, architectures[i]);
        }
        append_text(&list, "]}");
        layout_add(&layout, list, strlen(list));
        append_text(&index,
                    "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
                    "\"application/vnd.oci.image.index.v1+json\",\"digest\":\"%s\",\"size\":%zu,"
                    "\"annotations\":{\"io.containerd.image.name\":\"docker.io/library/app:7\","
                    "\"org.opencontainers.image.ref.name\":\"7\"}}]}",
                    layout.last, layout.last_length);
        layout_end(&layout, index, archive);
        EXPECT_EQ(index_archive(archive), 0);
        EXPECT(strstr(output, digests[1]));
        EXPECT(!strstr(output, digests[0]));
        EXPECT(strstr(output, "\"names\":[\"docker.io/library/app:7\"]"));
        EXPECT(strstr(output, layout.last));
        EXPECT_EQ(unpack_archive(archive, digests[1], "docker.io/library/app:7"), 0);
        tar_done(&layers[0]);
        tar_done(&layers[1]);
}

/* Newer versions of "docker save" write an OCI layout with a manifest.json. */
TEST(an_archive_of_both_formats_is_read_as_oci_with_all_its_names)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *index = NULL;
        cleanup_free char *config = NULL, *docker = NULL;
        Tar layer = small_layer("x");
        TestImage image = { NULL, &layer, 1, NULL, NULL };
        char config_digest[80], layer_digest[80], manifest_digest[80];
        Layout layout = { 0 };

        config = test_config(&image);
        digest_text(config, strlen(config), config_digest);
        digest_text(layer.data, layer.length, layer_digest);
        layout_add_image(&layout, &image);
        memcpy(manifest_digest, layout.last, sizeof(manifest_digest));
        append_text(&docker,
                    "[{\"Config\":\"blobs/sha256/%s\",\"RepoTags\":[\"app:1\",\"other:2\"],"
                    "\"Layers\":[\"blobs/sha256/%s\"]}]",
                    config_digest + 7, layer_digest + 7);
        tar_add(&layout.tar, &(TarEntry){ .name = "manifest.json", .data = docker });
        append_text(&index,
                    "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
                    "\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"%s\",\"size\":%zu,"
                    "\"annotations\":{\"io.containerd.image.name\":\"docker.io/library/app:1\","
                    "\"org.opencontainers.image.ref.name\":\"1\"}}]}",
                    layout.last, layout.last_length);
        layout_end(&layout, index, archive);
        EXPECT_EQ(index_archive(archive), 0);
        EXPECT(strstr(output, "\"names\":[\"docker.io/library/app:1\",\"app:1\",\"other:2\"]"));
        EXPECT(strstr(output, manifest_digest));
        EXPECT(!strstr(output, config_digest));
        tar_done(&layer);
}

TEST(docker_archives_may_have_a_layer_as_a_link_to_an_earlier_one)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *config = NULL;
        cleanup_free char *manifest = NULL;
        Tar layer = small_layer("x"), tar = { 0 };
        Tar twice[2] = { layer, layer };
        TestImage image = { NULL, twice, 2, NULL, NULL };
        char digest[80];

        config = test_config(&image);
        digest_text(config, strlen(config), digest);
        tar_add(&tar,
                &(TarEntry){ .name = "./one/layer.tar", .data = layer.data, .size = layer.length });
        tar_add(&tar,
                &(TarEntry){ .name = "two/layer.tar", .type = '2', .link = "../one/layer.tar" });
        tar_add(&tar, &(TarEntry){ .name = "loop/layer.tar", .type = '2', .link = "layer.tar" });
        tar_add(&tar, &(TarEntry){ .name = "config", .data = config });
        append_text(&manifest, "[{\"Config\":\"config\",\"RepoTags\":null,"
                               "\"Layers\":[\"one/layer.tar\",\"two/layer.tar\"]}]");
        tar_add(&tar, &(TarEntry){ .name = "manifest.json", .data = manifest });
        tar_end(&tar);
        write_file(archive, tar.data, tar.length);
        EXPECT_EQ(index_archive(archive), 0);
        EXPECT(!strstr(output, "refusal"));
        EXPECT_EQ(unpack_archive(archive, digest, "docker.io/library/app:1"), 0);
        EXPECT_EQ(count_in_store("layers"), 2);
        tar_done(&tar);
        tar_done(&layer);
}

TEST(a_layer_with_a_wrong_diff_id_is_refused)
{
        cleanup_free char *archive = in_test_directory("image.tar"), *config = NULL;
        Tar promised = small_layer("promised"), given = small_layer("given"), tar = { 0 };
        char digest[80];

        config = test_config(&(TestImage){ NULL, &promised, 1, NULL, NULL });
        digest_text(config, strlen(config), digest);
        tar_add(&tar, &(TarEntry){ .name = "config", .data = config });
        tar_add(&tar, &(TarEntry){ .name = "layer.tar", .data = given.data, .size = given.length });
        tar_add(&tar,
                &(TarEntry){ .name = "manifest.json",
                             .data = "[{\"Config\":\"config\",\"Layers\":[\"layer.tar\"]}]" });
        tar_end(&tar);
        write_file(archive, tar.data, tar.length);
        EXPECT_EQ(unpack_archive(archive, digest, "x"), 1);
        expect_message("a wrong layer", "layer 'layer.tar': is damaged: its DiffID is sha256:");
        expect_empty_store("a wrong layer");
        tar_done(&tar);
        tar_done(&given);
        tar_done(&promised);
}

TEST(an_invalid_digest_is_refused_before_anything_is_read)
{
        static const char *const digests[] = { "", "latest", "sha256:abc", "sha256:../../x" };

        for (size_t i = 0; i < N_ELEMENTS(digests); i++)
                EXPECT_EQ(unpack_archive("/does/not/exist", digests[i], "x"), 2);
}

TEST(work_of_a_dead_process_is_swept_and_that_of_a_running_one_is_not)
{
        cleanup_free char *store = in_test_directory("store"), *tmp = path_join(store, "tmp");
        cleanup_free char *dead = path_join(tmp, "dead/0/etc"), *living = path_join(tmp, "living");
        cleanup_close int fd = -EBADF;

        REQUIRE(mkdir_parents_at(AT_FDCWD, dead, 0700) >= 0);
        fd = open_directory_at(AT_FDCWD, living, 0700);
        REQUIRE(fd >= 0 && flock(fd, LOCK_EX) >= 0);
        EXPECT_EQ(run_program((char *[]){ helper_path(), (char[]){ "sweep" }, (char[]){ "--store" },
                                          store, NULL },
                              NULL, NULL),
                  0);
        EXPECT(!store_has("tmp/dead"));
        EXPECT(store_has("tmp/living"));
}

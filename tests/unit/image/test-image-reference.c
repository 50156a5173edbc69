/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-reference.h"
#include "agent/image/image-store.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#define HEX    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define DIGEST "sha256:" HEX
#define A64    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define T128   A64 A64
/* With "docker.io/library/" before it, 255 characters. */
#define N237 A64 A64 A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

TEST(references_are_completed_as_docker_does)
{
        static const struct {
                const char *reference, *normal;
        } cases[] = {
                { "busybox", "docker.io/library/busybox:latest" },
                { "busybox:1.36", "docker.io/library/busybox:1.36" },
                { "library/busybox", "docker.io/library/busybox:latest" },
                { "docker.io/busybox", "docker.io/library/busybox:latest" },
                { "index.docker.io/busybox", "docker.io/library/busybox:latest" },
                { "docker.io/library/busybox:latest", "docker.io/library/busybox:latest" },
                { "team/app", "docker.io/team/app:latest" },
                { "a/b/c/d:x", "docker.io/a/b/c/d:x" },
                { "registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9" },
                { "localhost/app", "localhost/app:latest" },
                { "localhost:5000/app", "localhost:5000/app:latest" },
                { "localhost:5000/app:v1", "localhost:5000/app:v1" },
                { "example.com:443/a/b:v1", "example.com:443/a/b:v1" },
                { "REGISTRY/app", "REGISTRY/app:latest" },
                { "[2001:db8::1]:5000/app", "[2001:db8::1]:5000/app:latest" },
                { "x/a.b-c__d---e/f", "docker.io/x/a.b-c__d---e/f:latest" },
                { "x/a_b", "docker.io/x/a_b:latest" },
                { "app:V1_2-3.4", "docker.io/library/app:V1_2-3.4" },
                { "app:_x", "docker.io/library/app:_x" },
                { "app:" T128, "docker.io/library/app:" T128 },
                { "app@" DIGEST, "docker.io/library/app@" DIGEST },
                { "app:v1@" DIGEST, "docker.io/library/app:v1@" DIGEST },
                { "quay.io/a/b@" DIGEST, "quay.io/a/b@" DIGEST },
                { N237, "docker.io/library/" N237 ":latest" },
                { "x/" HEX, "docker.io/x/" HEX ":latest" },
                { "latest", "docker.io/library/latest:latest" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *normal = NULL, *again = NULL;

                EXPECT_EQ(image_reference_normalise(cases[i].reference, &normal, &error), 0);
                EXPECT_STREQ(normal, cases[i].normal);
                EXPECT_STREQ(error.message, NULL);
                /* Normalised references are unchanged. */
                if (normal)
                        EXPECT_EQ(image_reference_normalise(normal, &again, NULL), 0);
                EXPECT_STREQ(again, cases[i].normal);
        }
}

TEST(an_invalid_reference_is_refused_with_its_reason)
{
        static const struct {
                const char *reference, *reason;
        } cases[] = {
                { "", "invalid reference format" },
                { ":latest", "invalid reference format" },
                { "/app", "invalid reference format" },
                { "app/", "invalid reference format" },
                { "a//b", "invalid reference format" },
                { "-app", "invalid reference format" },
                { "app-", "invalid reference format" },
                { "a..b", "invalid reference format" },
                { "x/a___b", "invalid reference format" },
                { "app name", "invalid reference format" },
                { "app\n", "invalid reference format" },
                { "b\xc3\xbcro", "invalid reference format" },
                { "https://example.com/app", "'https:' is not a registry" },
                { "Busybox", "the repository name must be lower case" },
                { "docker.io/Library/busybox", "the repository name must be lower case" },
                { "-x.com/app", "'-x.com' is not a registry" },
                { "example.com:/app", "'example.com:' is not a registry" },
                { "example.com:x/app", "'example.com:x' is not a registry" },
                { "app:", "'' is not a tag" },
                { "app:-x", "'-x' is not a tag" },
                { "app:a b", "'a b' is not a tag" },
                { "app:a:b", "'a:b' is not a tag" },
                { "app:" T128 "a", "'" T128 "a' is not a tag" },
                { "app@", "'' is not a sha256 digest" },
                { "app@sha256:abc", "'sha256:abc' is not a sha256 digest" },
                { "app@" DIGEST "0", "'" DIGEST "0' is not a sha256 digest" },
                { "app@sha512:" HEX HEX, "'sha512:" HEX HEX "' is not a sha256 digest" },
                { "app@sha256:../../../../etc", "'sha256:../../../../etc' is not a sha256 digest" },
                { HEX, "an image ID is not a name" },
                { N237 "a", "the name is longer than 255 characters" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *normal = NULL, *expected = NULL;

                REQUIRE(asprintf(&expected, "couldn't parse image name '%s': %s",
                                 cases[i].reference, cases[i].reason) > 0);
                EXPECT_EQ(image_reference_normalise(cases[i].reference, &normal, &error), -EINVAL);
                EXPECT_STREQ(error.message, expected);
                EXPECT_STREQ(normal, NULL);
        }
}

TEST(a_bare_word_of_an_archive_is_a_name_and_a_tag_of_its_file)
{
        static const struct {
                const char *name, *file, *names[3];
        } cases[] = {
                { "latest",
                  "app.tar",
                  { "docker.io/library/latest:latest", "docker.io/library/app:latest" } },
                { "v1",
                  "app.tar.gz",
                  { "docker.io/library/v1:latest", "docker.io/library/app:v1" } },
                { "quay.io/a/b:v2", "app.tar", { "quay.io/a/b:v2" } },
                { "busybox:1", "app.tar", { "docker.io/library/busybox:1" } },
                { "NotAName", "app.tar", { "docker.io/library/app:NotAName" } },
                { "v1", "No Name.tar", { "docker.io/library/v1:latest" } },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *stem = image_archive_stem(cases[i].file);
                cleanup_strv char **names = NULL;

                EXPECT_EQ(image_reference_names_from_archive(cases[i].name, stem, &names), 0);
                for (size_t j = 0; j < N_ELEMENTS(cases[i].names); j++)
                        EXPECT_STREQ(j < strv_length(names) ? names[j] : NULL, cases[i].names[j]);
        }
}

TEST(a_stem_is_the_file_name_without_the_suffixes_of_compression)
{
        static const struct {
                const char *file, *stem;
        } cases[] = {
                { "busybox.tar", "busybox" },
                { "busybox.tar.gz", "busybox" },
                { "busybox.tgz", "busybox" },
                { "busybox.oci.tar.zst", "busybox" },
                { "app-1.2.3.tar", "app-1.2.3" },
                { "image", "image" },
                { ".tar", ".tar" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *stem = image_archive_stem(cases[i].file);
                EXPECT_STREQ(stem, cases[i].stem);
        }
}

TEST(the_digest_of_a_reference_follows_the_at_sign)
{
        EXPECT_STREQ(image_reference_digest("docker.io/library/app@" DIGEST), DIGEST);
        EXPECT_STREQ(image_reference_digest("docker.io/library/app:v1@" DIGEST), DIGEST);
        EXPECT_STREQ(image_reference_digest("docker.io/library/app:v1"), NULL);
}

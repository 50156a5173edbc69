/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/source-index.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/ed25519.h"
#include "tests/test.h"

#include <errno.h>

#define SUM      "\"sha256\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""
#define HEAD     "{\"format\":1,\"number\":7,\"expires\":\"2030-01-01T00:00:00Z\",\"fleet\":\"shops\","
#define KEY      "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="
#define FILE_MAX 1000

static const char pem[] = "-----BEGIN PRIVATE KEY-----\n"
                          "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
                          "-----END PRIVATE KEY-----\n";

TEST(an_index_is_parsed_with_all_fields)
{
        static const char text[] =
                HEAD "\"files\":[{\"name\":\"b.yaml\",\"size\":5," SUM "},"
                     "{\"name\":\"a.json\",\"size\":1000," SUM "}],\"keys\":[\"" KEY
                     "\"],\"progressDeadlineSeconds\":600,\"later\":1}";
        cleanup_with(source_index_done) SourceIndex index = { 0 };

        REQUIRE(source_index_parse(text, strlen(text), FILE_MAX, &index, NULL) == 0);
        EXPECT_EQ(index.number, 7);
        EXPECT_EQ(index.expires, UINT64_C(1893456000) * USEC_PER_SEC);
        EXPECT_STREQ(index.fleet, "shops");
        REQUIRE(index.files.n == 2);
        EXPECT_STREQ(index.files.items[0].name, "a.json");
        EXPECT_EQ(index.files.items[1].size, 5);
        EXPECT_STREQ(index.keys[0], KEY);
        EXPECT_EQ(index.progress_deadline_seconds, 600);
}

TEST(an_index_without_files_is_valid_and_desires_nothing)
{
        cleanup_with(source_index_done) SourceIndex index = { 0 };

        REQUIRE(source_index_parse(HEAD "\"files\":[]}", strlen(HEAD "\"files\":[]}"), FILE_MAX,
                                   &index, NULL) == 0);
        EXPECT_EQ(index.files.n, 0);
        EXPECT(!index.keys);
        EXPECT_EQ(index.progress_deadline_seconds, 0);
}

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BLOB   "{\"digest\":\"" DIGEST "\",\"size\":9}"
#define PLATFORM(name, type, size, blobs, deltas)                                    \
        "{\"platform\":\"" name "\",\"mediaType\":\"" type "\",\"digest\":\"" DIGEST \
        "\",\"size\":" size ",\"blobs\":" blobs ",\"deltas\":" deltas "}"
#define GOOD_PLATFORM          PLATFORM("linux/amd64", "application/a+json", "5", "[" BLOB "]", "[]")
#define IMAGES(list)           HEAD "\"files\":[],\"images\":" list "}"
#define IMAGE(name, platforms) "{\"name\":\"" name "\",\"platforms\":[" platforms "]}"
#define APP                    "example.com/app:1"

TEST(an_index_names_images_with_their_blobs_and_deltas)
{
        static const char text[] = IMAGES("[" IMAGE("example.com/z:1", GOOD_PLATFORM) "," IMAGE(
                APP, PLATFORM("linux/arm64/v8", "application/b", "5", "[" BLOB "," BLOB "]",
                              "[{\"base\":\"" DIGEST "\",\"digest\":\"" DIGEST
                              "\",\"size\":3,\"blobs\":[" BLOB "]}]")) "]");
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        const SourceIndexImage *image;

        REQUIRE(source_index_parse(text, strlen(text), FILE_MAX, &index, NULL) == 0);
        REQUIRE(index.images.n == 2);
        EXPECT_STREQ(index.images.items[0].name, APP);
        image = source_index_find_image(&index, APP);
        REQUIRE(image && image->platforms.n == 1);
        EXPECT_STREQ(image->platforms.items[0].name, "linux/arm64/v8");
        EXPECT_STREQ(image->platforms.items[0].manifest.digest, DIGEST);
        EXPECT_EQ(source_index_platform_bytes(&image->platforms.items[0]), 5 + 9 + 9);
        REQUIRE(image->platforms.items[0].deltas.n == 1);
        EXPECT_STREQ(image->platforms.items[0].deltas.items[0].base, DIGEST);
        EXPECT_EQ(image->platforms.items[0].deltas.items[0].blobs.n, 1);
        EXPECT(!source_index_find_image(&index, "example.com/app:2"));
}

TEST(an_index_with_invalid_images_is_reported_with_its_place)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                { IMAGES("{}"), "images: must be a list of at most 1000" },
                { IMAGES("[{}]"), "images[0]: name: " },
                { IMAGES("[" IMAGE("app:1", GOOD_PLATFORM) "]"),
                  "images[0]: name: must be written as 'docker.io/library/app:1'" },
                { IMAGES("[" IMAGE(APP, "") "]"),
                  "images[0]: platforms: must be a list of at least one" },
                { IMAGES("[" IMAGE(APP, GOOD_PLATFORM) "," IMAGE(APP, GOOD_PLATFORM) "]"),
                  "images: " APP " occurs twice" },
                { IMAGES("[" IMAGE(APP, PLATFORM("linux", "a/b", "5", "[]", "[]")) "]"),
                  "images[0]: platforms[0]: platform: must be" },
                { IMAGES("[" IMAGE(APP, PLATFORM("linux/a b", "a/b", "5", "[]", "[]")) "]"),
                  "images[0]: platforms[0]: platform: must be" },
                { IMAGES("[" IMAGE(APP, PLATFORM("linux/a", "", "5", "[]", "[]")) "]"),
                  "images[0]: platforms[0]: mediaType: must be" },
                { IMAGES("[" IMAGE(APP, PLATFORM("linux/a", "a/b", "0", "[]", "[]")) "]"),
                  "images[0]: platforms[0]: size: must be between 1 and" },
                { IMAGES("[" IMAGE(APP,
                                   PLATFORM("linux/a", "a/b", "5", "[{\"size\":1}]", "[]")) "]"),
                  "images[0]: platforms[0]: blobs[0]: digest: must be 'sha256:' and" },
                { IMAGES("[" IMAGE(APP, PLATFORM("linux/a", "a/b", "5", "[]", "[{}]")) "]"),
                  "images[0]: platforms[0]: deltas[0]: base: must be 'sha256:' and" },
                { IMAGES("[" IMAGE(APP, PLATFORM("linux/a", "a/b", "5", "[]", "7")) "]"),
                  "images[0]: platforms[0]: deltas: must be a list of at most 32" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(source_index_done) SourceIndex index = { 0 };
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(source_index_parse(cases[i].text, strlen(cases[i].text), FILE_MAX, &index,
                                             &error),
                          -EBADMSG);
                EXPECT(error.message &&
                       strncmp(error.message, cases[i].error, strlen(cases[i].error)) == 0);
        }
}

TEST(a_file_url_contains_the_path_of_the_stick)
{
        EXPECT_STREQ(source_stick_path("file:///media/index.json"), "/media/index.json");
        EXPECT_STREQ(source_stick_path("file:/media/index.json"), "/media/index.json");
        EXPECT(!source_stick_path("https://example.com/index.json"));
        EXPECT(!source_stick_path("file:media"));
}

#define ONE(name, size, sum) HEAD "\"files\":[{\"name\":\"" name "\",\"size\":" size "," sum "}]}"

TEST(an_invalid_index_is_reported_with_its_place)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                { "", "is not a JSON object: line 1, column 0" },
                { "[]", "is not a JSON object: line -1, column -1" },
                { HEAD "\"files\":[", "is not a JSON object: line 1, column 81" },
                { "{\"number\":7,\"number\":8}", "is not a JSON object: line 1, column 20" },
                { HEAD "\"files\":[],\"progressDeadlineSeconds\":0}",
                  "progressDeadlineSeconds: must be a number between 1 and 999999999" },
                { HEAD "\"files\":[],\"progressDeadlineSeconds\":\"60\"}",
                  "progressDeadlineSeconds: must be a number between 1 and 999999999" },
                { "{\"format\":2}", "format: must be 1" },
                { "{\"format\":1,\"number\":0}", "number: must be a number above 0" },
                { "{\"format\":1,\"number\":-1}", "number: must be a number above 0" },
                { "{\"format\":1,\"number\":\"7\"}", "number: must be a number above 0" },
                { "{\"format\":1,\"number\":7,\"expires\":\"soon\"}",
                  "expires: must be a time such as 2027-01-31T00:00:00Z" },
                { "{\"format\":1,\"number\":7,\"expires\":\"2030-01-01T00:00:00Z\"}",
                  "fleet: must be a name of letters, digits, '.', '_' and '-'" },
                { HEAD "\"x\":1}", "files: must be a list of at most 1000" },
                { ONE("../a.yaml", "1", SUM), "files[0]: name: must be the name of a manifest, at "
                                              "most 200 letters, digits, '.', '_' and '-'" },
                { ONE(".a.yaml", "1", SUM), "files[0]: name: must be the name of a manifest, at "
                                            "most 200 letters, digits, '.', '_' and '-'" },
                { ONE("a.sh", "1", SUM), "files[0]: name: must be the name of a manifest, at most "
                                         "200 letters, digits, '.', '_' and '-'" },
                { ONE("a.yaml", "0", SUM), "files[0]: size: must be between 1 and 1000" },
                { ONE("a.yaml", "1001", SUM), "files[0]: size: must be between 1 and 1000" },
                { ONE("a.yaml", "1", "\"sha256\":\"abc\""),
                  "files[0]: sha256: must be 64 lower-case hex digits" },
                { HEAD "\"files\":[{\"name\":\"a.yaml\",\"size\":1," SUM
                       "},{\"name\":\"a.yaml\",\"size\":2," SUM "}]}",
                  "files: a.yaml occurs twice" },
                { HEAD "\"files\":[],\"keys\":[]}", "keys: must be a list of 1 to 16 keys" },
                { HEAD "\"files\":[],\"keys\":[\"" KEY "\",\"abc\"]}",
                  "keys[1]: must be a public key of Ed25519 in base64" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(source_index_done) SourceIndex index = { 0 };
                cleanup_error Error error = ERROR_NULL;

                EXPECT_EQ(source_index_parse(cases[i].text, strlen(cases[i].text), FILE_MAX, &index,
                                             &error),
                          -EBADMSG);
                EXPECT_STREQ(error.message, cases[i].error);
        }
}

TEST(an_index_that_is_too_large_is_refused)
{
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        cleanup_error Error error = ERROR_NULL, total = ERROR_NULL;
        size_t size = SOURCE_INDEX_BYTES_MAX + 1, n;
        char *text = calloc(1, size + 1);

        REQUIRE(text);
        memset(text, ' ', size);
        EXPECT_EQ(source_index_parse(text, size, FILE_MAX, &index, &error), -EBADMSG);
        EXPECT_STREQ(error.message, "is larger than 1 MiB");
        n = (size_t) snprintf(text, size, "%s", HEAD "\"files\":[");
        for (int i = 0; i < 2; i++)
                n += (size_t) snprintf(text + n, size - n,
                                       "%s{\"name\":\"%d.yaml\",\"size\":10000000," SUM "}",
                                       i > 0 ? "," : "", i);
        (void) snprintf(text + n, size - n, "]}");
        EXPECT_EQ(source_index_parse(text, strlen(text), 10 * MIB, &index, &total), -EBADMSG);
        EXPECT_STREQ(total.message, "files: are larger than 16 MiB together");
        free(text);
}

#define EXPIRED                                                                               \
        "has expired at 1970-01-01T00:33:20Z; the clock of this machine is not set, it says " \
        "1970-01-01; it is tried again when the clock is set"

TEST(a_node_accepts_a_newer_unexpired_index_of_its_fleet)
{
        static const struct {
                int64_t in_use;       /* 0: no index is in use */
                const char *of_fleet; /* the index in use */
                const char *configured;
                bool is_same; /* bytes */
                uint64_t now_sec;
                const char *error;
        } cases[] = {
                { 0, NULL, "shops", false, 1000, NULL },
                { 6, "shops", "shops", false, 1000, NULL },
                { 7, "shops", "shops", true, 1000, NULL },
                { 7, "shops", "shops", false, 1000,
                  "has the number of an index that was verified before, 7, and other contents" },
                { 8, "shops", "shops", false, 1000,
                  "has the number 7, and an index with the number 8 was verified before" },
                { 8, "banks", "shops", false, 1000, NULL }, /* the fleet was changed */
                { 0, NULL, "banks", false, 1000, "is of the fleet 'shops', not of 'banks'" },
                { 0, NULL, "shops", false, 2000, EXPIRED },
                { 0, NULL, "shops", false, 3000, EXPIRED },
                { 0, NULL, "shops", false, 1999, NULL },
        };
        char fleet[] = "shops";

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const SourceIndex index = { .number = 7,
                                            .fleet = fleet,
                                            .expires = 2000 * USEC_PER_SEC };
                const SourceIndexKnown in_use = { cases[i].of_fleet, cases[i].in_use, "one" };
                cleanup_error Error error = ERROR_NULL;
                int r = source_index_check(&index, cases[i].is_same ? "one" : "other", &in_use,
                                           cases[i].configured, cases[i].now_sec * USEC_PER_SEC,
                                           &error);

                EXPECT_EQ(r, cases[i].error ? -EBADMSG : 0);
                EXPECT_STREQ(strna(error.message), strna(cases[i].error));
        }
}

TEST(an_index_must_be_signed_by_one_of_the_keys)
{
        char other[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", key[] = KEY;
        uint8_t signature[ED25519_SIGNATURE_SIZE], public[ED25519_KEY_SIZE];
        cleanup_error Error unknown = ERROR_NULL, none = ERROR_NULL;
        char *both[] = { other, key, NULL }, *wrong[] = { other, NULL }, text[128];

        REQUIRE(ed25519_sign(pem, "index", 5, signature, public, NULL) == 0);
        base64_encode(signature, sizeof(signature), text);
        EXPECT_EQ(source_index_verify("index", 5, text, strlen(text), both, NULL), 0);
        EXPECT_EQ(source_index_verify("index", 5, (const char *) signature, 64, both, NULL), 0);
        EXPECT_EQ(source_index_verify("Index", 5, text, strlen(text), both, NULL), -EBADMSG);
        EXPECT_EQ(source_index_verify("index", 5, text, strlen(text), wrong, &unknown), -EBADMSG);
        EXPECT_STREQ(unknown.message, "is not signed by one of the known keys");
        EXPECT_EQ(source_index_verify("index", 5, text, strlen(text), NULL, NULL), -EBADMSG);
        EXPECT_EQ(source_index_verify("index", 5, "", 0, both, &none), -EBADMSG);
        EXPECT_STREQ(none.message, "the file of signatures contains none");
}

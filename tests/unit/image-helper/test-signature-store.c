/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature/signature-store.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <jansson.h>

enum {
        READ_MAX = 64 * 1024, /* as the agent reads it */
        SIGNATURE_SIZE = 400 * 1024,
};

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static const char digest[] =
        "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

static void name_repository(unsigned number, char ret[256]) {
        (void) snprintf(ret, 256, "registry.test/%0200u", number);
}

TEST(the_record_of_access_of_an_image_with_many_names_can_be_read)
{
        enum {
                N_REPOSITORIES = 400,
        };
        cleanup_with(store_freep) Store *store = NULL;
        cleanup_free char *text = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *json = NULL;
        char path[128], repository[256];
        const json_t *access;

        REQUIRE(store_open(test_directory(), &store, &error) == 0);
        for (unsigned i = 0; i < N_REPOSITORIES; i++) {
                name_repository(i, repository);
                REQUIRE(verified_write(store, digest,
                                       &(VerifiedUpdate){ .repository = repository,
                                                          .secret_hash = "hash" },
                                       &error) == 0);
        }
        (void) snprintf(path, sizeof(path), "verified/%s.json", digest + strlen("sha256:"));
        REQUIRE(checksummed_read_at(store_fd(store), path, READ_MAX, &text) == 0);
        json = json_loads(text, 0, NULL);
        access = json_object_get(json, "access");
        EXPECT(json_object_size(access) > N_REPOSITORIES / 2);
        EXPECT(json_object_get(access, repository) != NULL);
        name_repository(0, repository);
        EXPECT(json_object_get(access, repository) == NULL);
}

static void expect_index(const Store *store, const char *expected) {
        char index[DIGEST_SIZE] = "";

        EXPECT_EQ(signature_store_read_index(store, digest, index), expected ? 0 : -ENOENT);
        EXPECT_STREQ(index, expected ? expected : "");
}

static void record_pull(Store *store, const char *index_digest) {
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(verified_write(store, digest,
                               &(VerifiedUpdate){ .index_digest = index_digest,
                                                  .repository = "registry.test/app" },
                               &error) == 0);
}

TEST(the_index_of_an_image_stays_recorded)
{
        static const char *const indexes[] = { "sha256:" HEX "0", "sha256:" HEX "1",
                                               "sha256:" HEX "2" };
        cleanup_with(signature_set_done) SignatureSet set = { 0 };
        cleanup_with(store_freep) Store *store = NULL;
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(store_open(test_directory(), &store, &error) == 0);
        expect_index(store, NULL);
        record_pull(store, NULL);
        expect_index(store, NULL);
        record_pull(store, indexes[0]);
        expect_index(store, indexes[0]);
        record_pull(store, NULL);
        expect_index(store, indexes[0]);
        record_pull(store, indexes[1]);
        expect_index(store, indexes[1]);
        record_pull(store, "sha256:damaged");
        expect_index(store, NULL);
        REQUIRE(signature_set_add(&set, "bundle", strlen("bundle"), NULL) == 0);
        REQUIRE(signature_store_write(store, digest, indexes[2], &set, &error) == 0);
        expect_index(store, indexes[2]);
        REQUIRE(signature_store_write(store, digest, NULL, &set, &error) == 0);
        record_pull(store, indexes[0]);
        expect_index(store, indexes[0]);
}

static void write_signatures(Store *store, const char *name, size_t n) {
        cleanup_with(signature_set_done) SignatureSet set = { 0 };
        cleanup_error Error error = ERROR_NULL;
        char document[32];

        for (size_t i = 0; i < n; i++) {
                (void) snprintf(document, sizeof(document), "%s %zu", name, i);
                REQUIRE(signature_set_add(&set, document, strlen(document), NULL) == 0);
        }
        REQUIRE(signature_store_write(store, digest, NULL, &set, &error) == 0);
}

static void expect_signatures(const Store *store, size_t n, const char *first, const char *last) {
        cleanup_with(signature_set_done) SignatureSet set = { 0 };

        EXPECT_EQ(signature_store_read(store, digest, &set), 0);
        REQUIRE(set.n == n);
        EXPECT_STREQ(set.items[0].document, first);
        EXPECT_STREQ(set.items[n - 1].document, last);
}

TEST(signatures_stay_stored_if_a_later_pull_does_not_find_them)
{
        cleanup_with(store_freep) Store *store = NULL;
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(store_open(test_directory(), &store, &error) == 0);
        write_signatures(store, "old", 1);
        write_signatures(store, "new", 2);
        expect_signatures(store, 3, "new 0", "old 0");
        write_signatures(store, "old", 1);
        expect_signatures(store, 3, "old 0", "new 1");
        write_signatures(store, "newest", SIGSTORE_SIGNATURES_MAX - 1);
        expect_signatures(store, SIGSTORE_SIGNATURES_MAX, "newest 0", "old 0");
}

/* A control character takes six bytes in JSON. */
TEST(number_of_stored_signatures_is_limited_to_what_can_be_read)
{
        enum {
                N_SIGNATURES = 4,
        };
        cleanup_with(signature_set_done) SignatureSet written = { 0 }, set = { 0 };
        cleanup_free char *signature = calloc(1, SIGNATURE_SIZE + 1);
        cleanup_with(store_freep) Store *store = NULL;
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(signature && store_open(test_directory(), &store, &error) == 0);
        memset(signature, '\1', SIGNATURE_SIZE);
        for (size_t i = 0; i < N_SIGNATURES; i++)
                REQUIRE(signature_set_add(&written, "payload", strlen("payload"), signature) == 0);
        EXPECT_EQ(written.n, (size_t) N_SIGNATURES);
        REQUIRE(signature_store_write(store, digest, NULL, &written, &error) == 0);
        EXPECT_EQ(signature_store_read(store, digest, &set), 0);
        EXPECT_EQ(set.n, (size_t) N_SIGNATURES - 1);
}

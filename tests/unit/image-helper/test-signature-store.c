/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/signature-store.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <jansson.h>

enum {
        READ_MAX = 64 * 1024, /* as the agent reads it */
};

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

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-policy.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

static const ImageOrigin origin = { .transport = "docker" };

static int demand_of_image(ImagePolicy *policy) {
        json_t *demand = NULL;
        int r = image_policy_demand(policy, &origin, "example.com/app:1", &demand, NULL);

        json_decref(demand);
        return r;
}

static char *put_policy(const char *text) {
        char *path = path_join(test_directory(), "policy.json");

        REQUIRE(path && write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0600) == 0);
        return path;
}

TEST(a_policy_that_cannot_be_read_now_is_read_again)
{
        cleanup_free char *path =
                put_policy("{\"default\":[{\"type\":\"insecureAcceptAnything\"}]}");
        ImagePolicy policy = { .path = path, .is_required = true };
        struct rlimit limit;
        int r;

        REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, limit.rlim_max }) == 0);
        r = demand_of_image(&policy);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        EXPECT_EQ(r, -EKEYREJECTED);
        EXPECT_EQ(demand_of_image(&policy), 0);
        EXPECT(policy.is_read);
        image_policy_done(&policy);
}

TEST(an_image_must_meet_the_scopes_of_all_names_of_its_server)
{
        cleanup_free char *path =
                put_policy("{\"default\":[{\"type\":\"insecureAcceptAnything\"}],\"transports\":{"
                           "\"docker\":{\"localhost:5000\":[{\"type\":\"reject\"}]}}}");
        static const char *const references[] = { "localhost:5000/app:1", "127.0.0.1:5000/app:1",
                                                  "[::1]:5000/app:1" };
        ImagePolicy policy = { .path = path, .is_required = true };

        for (size_t i = 0; i < N_ELEMENTS(references); i++) {
                cleanup_error Error error = ERROR_NULL;
                json_t *demand = NULL;

                EXPECT_EQ(image_policy_demand(&policy, &origin, references[i], &demand, &error),
                          -EKEYREJECTED);
                EXPECT(strstr(strna(error.message), "\"localhost:5000\""));
        }
        EXPECT_EQ(demand_of_image(&policy), 0);
        image_policy_done(&policy);
}

TEST(an_invalid_policy_is_read_once)
{
        cleanup_free char *path = put_policy("{");
        ImagePolicy policy = { .path = path, .is_required = true };

        EXPECT_EQ(demand_of_image(&policy), -EKEYREJECTED);
        EXPECT(policy.is_read);
        EXPECT_EQ(demand_of_image(&policy), -EKEYREJECTED);
        image_policy_done(&policy);
}

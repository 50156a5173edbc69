/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/docker-configs.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

TEST(a_value_that_cannot_be_used_is_explained)
{
        static const struct {
                const char *document;
                bool has_auths;
                const char *problem; /* NULL: none */
        } cases[] = {
                { "", true, "its value is not a JSON object" },
                { "{\"auths\": ", true, "its value is not a JSON object" },
                { "[]", false, "its value is not a JSON object" },
                { "{\"auths\":{\"\xff\":{}}}", true, "its value is not a JSON object" },
                { "{\"a\":{}}", true, "its value has no object 'auths'" },
                { "{\"auths\":[]}", true, "its value has no object 'auths'" },
                { "{\"auths\":{\"r\":1}}", true, "its entry for 'r' is not an object" },
                { "{\"r\":1}", false, "its entry for 'r' is not an object" },
                { "{\"auths\":{\"r\":{\"auth\":\"hunter2\"}}}", true,
                  "its 'auth' for 'r' is not the Base64 of user:password" },
                { "{\"auths\":{\"r\":{\"auth\":7}}}", true,
                  "its 'auth' for 'r' is not the Base64 of user:password" },
                { "{\"auths\":{\"r\":{\"auth\":\"am9lOnB3\"}}}", true, NULL },
                { "{\"auths\":{\"r\":{\"auth\":\"am9lOg\"}}}", true, NULL },
                { "{\"auths\":{\"r\":{\"auth\":null}}}", true, NULL },
                { "{\"auths\":{}}", true, NULL },
                { "{\"r\":{\"username\":\"a\",\"password\":\"b\"}}", false, NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = pull_secret_check(cases[i].document, cases[i].has_auths, &error);

                EXPECT_EQ(r, cases[i].problem ? -EINVAL : 0);
                EXPECT_STREQ(strna(error.message), strna(cases[i].problem));
        }
}

TEST(secrets_precede_credentials_of_the_endpoint_and_the_last_of_two_members_is_used)
{
        cleanup_json json_t *secrets =
                json_pack("[{s:s}, {s:s}, {s:s}]", "document", "no JSON", "document",
                          "{\"auths\":{\"example.com\":{\"username\":\"a\"},"
                          "\"example.com\":{\"username\":\"joe\",\"password\":\"pw\"}}}",
                          "document", "{\"example.com\":{\"auth\":\"YW5uOng\"}}");
        Endpoint endpoint = { .host = (char[]){ "example.com" }, .repository = (char[]){ "app" } };
        Endpoints endpoints = { .items = &endpoint, .n = 1, .pull_secrets = secrets };
        cleanup_json json_t *own = json_pack("{s:{s:s}}", "example.com", "registrytoken", "t");

        EXPECT_EQ(credentials_add(&endpoint.credentials, own, "example.com", "app", false), 0);
        endpoint.credentials.items[0].secret = -1;
        EXPECT_EQ(pull_secrets_add_credentials(&endpoints), 0);
        REQUIRE(endpoint.credentials.n == 3);
        EXPECT_STREQ(endpoint.credentials.items[0].user, "joe");
        EXPECT_STREQ(endpoint.credentials.items[0].password, "pw");
        EXPECT_EQ(endpoint.credentials.items[0].secret, 1);
        EXPECT_STREQ(endpoint.credentials.items[1].user, "ann");
        EXPECT_EQ(endpoint.credentials.items[1].secret, 2);
        EXPECT_STREQ(endpoint.credentials.items[2].registry_token, "t");
        EXPECT_EQ(endpoint.credentials.items[2].secret, -1);
        credentials_done(&endpoint.credentials);
}

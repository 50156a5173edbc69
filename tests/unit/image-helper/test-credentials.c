/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/registry/registry-credentials.h"
#include "agent/image-helper/registry/registry-token.h"
#include "tests/test.h"

TEST(a_key_matches_its_registry_and_everything_below_its_path)
{
        static const struct {
                const char *key, *registry, *repository;
                bool is_meant;
        } cases[] = {
                { "https://index.docker.io/v1/", "registry-1.docker.io", "library/x", true },
                { "docker.io", "registry-1.docker.io", "library/x", true },
                { "example.com", "example.com", "a/b", true },
                { "http://example.com/v2/", "example.com", "a/b", true },
                { "example.com:5000", "example.com", "a/b", false },
                { "example.com/a", "example.com", "a/b", true },
                { "example.com/a/", "example.com", "a/b", true },
                { "example.com/a", "example.com", "ab", false },
                { "*.example.com", "x.example.com", "a", true },
                { "*.example.com", "x.y.example.com", "a", false },
                { "*", "example.com", "a", false },
                { "Example.com", "example.com", "a", true },
                { "example.com:443", "example.com", "a", true },
                { "https://example.com:0443/v1/", "example.com", "a", true },
                { "example.com:05000", "example.com:5000", "a", true },
                { "example.com", "EXAMPLE.com:443", "a", true },
                { "[0::1]:5000", "[::1]:5000", "a", true },
                { "[::1]", "[::1]:5000", "a", false },
                { "*.EXAMPLE.com:05000", "x.example.com:5000", "a", true },
                { "*.example.com:443/team", "x.example.com", "team/a", true },
                { "*.example.com", "x.example.com:5000", "a", false },
                { "index.docker.io:443", "docker.io", "library/x", true },
                { "127.1", "127.0.0.1", "a", false },
                { "", "example.com", "a", false },
                { "/", "example.com", "a", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                bool is_meant =
                        credentials_match(cases[i].key, cases[i].registry, cases[i].repository) > 0;

                EXPECT_EQ((int) is_meant, (int) cases[i].is_meant);
        }
}

TEST(the_closest_entry_comes_first_and_invalid_ones_are_skipped)
{
        static const char text[] = "{\"auths\":{\"example.com\":{\"auth\":\"am9lOnB3\"},"
                                   "\"example.com/team\":{\"username\":\"ann\",\"password\":\"x\"},"
                                   "\"example.com/team/app\":{\"auth\":\"no base64!\"},"
                                   "\"*.com\":{\"registrytoken\":\"t\"},\"other\":{}}}";
        Credentials credentials = { 0 };
        cleanup_json json_t *document = NULL;

        REQUIRE(document_parse(text, strlen(text), &document, NULL) >= 0);
        EXPECT_EQ(credentials_add(&credentials, document, "example.com", "team/app", false), 0);
        REQUIRE(credentials.n == 3);
        EXPECT_STREQ(credentials.items[0].user, "ann");
        EXPECT_STREQ(credentials.items[1].user, "joe");
        EXPECT_STREQ(credentials.items[1].password, "pw");
        EXPECT_STREQ(credentials.items[2].registry_token, "t");
        credentials_done(&credentials);
}

TEST(a_password_is_sent_only_to_the_registrys_own_token_servers)
{
        static const struct {
                const char *server, *registry;
                bool is_own;
        } cases[] = {
                { "auth.docker.io", "registry-1.docker.io", true },
                { "ghcr.io", "ghcr.io", true },
                { "gitlab.com", "registry.gitlab.com", true },
                { "auth.example.com", "example.com", true },
                { "auth.evil.com", "registry.example.com", false },
                { "example.com.evil.com", "registry.example.com", false },
                { "evil.io", "ghcr.io", false },
                { "10.0.0.2", "10.0.0.1", false },
                { "127.0.0.1", "127.0.0.1", true },
                { "localhost", "registry", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ((int) token_server_is_trusted(cases[i].server, cases[i].registry),
                          (int) cases[i].is_own);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/node-api-settings.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

static char *write_pem_file(void) {
        char *path = path_join(test_directory(), "tls.crt");
        cleanup_close int fd =
                path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -EBADF;

        REQUIRE(fd >= 0 && write_all(fd, "PEM\n", 4) >= 0);
        return path;
}

TEST(settings_have_the_defaults_of_the_kubelet)
{
        const Config config = { 0 };
        const NodeAccessSettings access = node_access_settings(&config);
        cleanup_free char *text = NULL, *material = NULL;

        EXPECT_EQ(node_api_settings_to_json(&(NodeApiSettingsSpec){ .config = &config,
                                                                    .node_name = "node1",
                                                                    .manifest_dir = "/m" },
                                            &text, &material, NULL),
                  0);
        EXPECT(!access.has_anonymous && access.has_token_reviews && access.has_access_reviews);
        EXPECT_EQ(access.token_usec, 120 * USEC_PER_SEC);
        EXPECT_EQ(access.allowed_usec, 300 * USEC_PER_SEC);
        EXPECT_EQ(access.denied_usec, 30 * USEC_PER_SEC);
        EXPECT(strstr(text, "\"nodeName\":\"node1\""));
        EXPECT(strstr(text, "\"manifestDirectory\":\"/m\",\"port\":10250,\"alone\":false,"
                            "\"debuggingHandlers\":true"));
        EXPECT(strstr(text, "\"tokenCacheMilliseconds\":120000,"
                            "\"allowedCacheMilliseconds\":300000,"
                            "\"streamIdleMilliseconds\":14400000"));
        EXPECT_STREQ(material, "{}");
}

TEST(settings_have_the_content_of_configured_files)
{
        cleanup_free char *path = write_pem_file(), *text = NULL, *material = NULL;
        char missing[] = "/nonexistent/key.pem", ttl[] = "5s";
        Config config = { .tls_cert_file = path,
                          .authentication = { .webhook = { .cache_ttl = ttl } } };
        const NodeApiSettingsSpec spec = { .config = &config,
                                           .node_name = "node1",
                                           .manifest_dir = "/m" };
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(node_api_settings_to_json(&spec, &text, &material, NULL), 0);
        EXPECT(strstr(material, "\"certificate\":\"PEM\\n\""));
        EXPECT(!strstr(text, "PEM"));
        EXPECT(strstr(text, "\"tokenCacheMilliseconds\":5000"));
        config.tls_private_key_file = missing;
        EXPECT_EQ(node_api_settings_to_json(&spec, &text, &material, &error), -ENOENT);
        EXPECT(strstr(error.message, missing));
}
